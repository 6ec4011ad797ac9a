"""Settings that come from a command line or a TOML file: checked once, all errors at a time."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from stoic.errors import InvalidParameter

PositiveField: TypeAlias = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
CountField: TypeAlias = Annotated[int, Field(ge=1)]
ShareField: TypeAlias = Annotated[float, Field(gt=0.0, lt=1.0)]
SeedField: TypeAlias = Annotated[int, Field(ge=0)]

Values = TypeVar("Values", bound=tuple[Any, ...])
AnySettings = TypeVar("AnySettings", bound="StudySettings")


class StudySettings(BaseModel):
    """Settings that cannot be changed, and no others than those named."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def each_once(values: Values) -> Values:
    """Return values that are all different.

    Raises
    ------
    ValueError
        If two are equal.
    """
    if len(set(values)) < len(values):
        raise ValueError("names something twice")
    return values


def at_least_one(values: Values) -> Values:
    """Return values of which there are some.

    Raises
    ------
    ValueError
        If there is none.
    """
    if not values:
        raise ValueError("is empty")
    return values


def checked(kind: type[AnySettings], given: Mapping[str, Any], path: Path | None = None) -> AnySettings:
    """Return settings of some kind, of which those that are given outrank those of a TOML file.

    Raises
    ------
    InvalidParameter
        With all that is wrong, and where.
    """
    from_file = {} if path is None else _read(path)
    try:
        return kind.model_validate(from_file | dict(given))
    except ValidationError as errors:
        raise InvalidParameter("; ".join(_in_words(error, kind) for error in errors.errors()) + ".") from None


def as_toml(settings: StudySettings) -> str:
    """Return settings as a TOML file, from which `checked` makes the same.

    Examples
    --------
    >>> class Small(StudySettings):
    ...     data: str = "e2006"
    ...     trials: int = 5
    >>> as_toml(Small(trials=3)).splitlines()
    ['data = "e2006"', 'trials = 3']
    """
    pairs = (
        f"{name} = {json.dumps(value, ensure_ascii=False)}"
        for name, value in settings.model_dump(mode="json").items()
        if value is not None
    )
    return "\n".join(pairs)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidParameter(f"{str(path)!r} is not a TOML file: {error}.") from None
    except OSError as error:
        raise InvalidParameter(f"{str(path)!r} cannot be read: {error.strerror or error}.") from None


def _in_words(error: Any, kind: type[StudySettings]) -> str:
    where = ".".join(str(part) for part in error["loc"]) or "settings"
    if error["type"] == "extra_forbidden":
        return f"{where} is not a setting; settings: {', '.join(kind.model_fields)}"
    what = error["msg"].removeprefix("Value error, ")
    given = repr(error["input"])
    return f"{where}={given if len(given) <= 60 else given[:57] + '…'}: {what[0].lower() + what[1:]}"
