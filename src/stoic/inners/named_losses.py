"""Losses by their names, and checks of loss objects."""

import difflib

from stoic.errors import InvalidParameter
from stoic.losses import LOSSES, Loss


def resolve_loss(loss: str | Loss) -> Loss:
    """Return the loss of that name with its default settings; a loss object comes back as it is.

    Parameters
    ----------
    loss : {"squared", "huber", "absolute", "quantile", "logistic"} or Loss

    Returns
    -------
    Loss

    Raises
    ------
    InvalidParameter
        If there is no loss of that name, or the object is no loss.

    Examples
    --------
    >>> from stoic.inners.named_losses import resolve_loss
    >>> resolve_loss("huber")
    Huber(threshold=1.0)
    """
    if isinstance(loss, str):
        if loss in LOSSES:
            return LOSSES[loss]()
        raise InvalidParameter(f"loss={loss!r} is not known; {_suggestion(loss)}.")
    if isinstance(loss, type):
        raise InvalidParameter(f"loss={loss.__name__} is a class, but an object is needed: {loss.__name__}(...).")
    missing = [name for name in ("value", "derivative", "curvature") if not hasattr(loss, name)]
    if missing:
        raise InvalidParameter(
            f"loss={loss!r} has no {' and no '.join(missing)}; give one of {', '.join(LOSSES)}, "
            f"or an object with value, derivative and curvature."
        )
    return loss


def _suggestion(name: str) -> str:
    near = difflib.get_close_matches(name.lower(), LOSSES)
    guess = f"did you mean {near[0]!r}? " if near else ""
    return f"{guess}Known are {', '.join(LOSSES)}" if near else f"known are {', '.join(LOSSES)}"
