"""Options of commands: lists of values, and settings that are given or left to their defaults."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


class Many(click.ParamType):  # type: ignore[type-arg]  # generic in some versions
    """Values separated by commas, as a tuple; "none" is an empty one."""

    def __init__(self, kind: type, name: str) -> None:
        self.kind, self.name = kind, name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Any, ...]:
        """Return the values."""
        if isinstance(value, tuple):
            return value
        parts = [] if value.strip().lower() == "none" else [part.strip() for part in value.split(",")]
        try:
            return tuple(self.kind(part) for part in parts)
        except ValueError:
            self.fail(f"{value!r} is not a list of {self.name} with commas between them.", param, ctx)


class OrAuto(click.ParamType):  # type: ignore[type-arg]  # generic in some versions
    """A number, or the word "auto"."""

    name = "number or auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        """Return the number or the word."""
        if str(value).strip().lower() == "auto":
            return "auto"
        try:
            return float(value)
        except ValueError:
            self.fail(f"{value!r} is neither a number nor auto.", param, ctx)


NUMBER_OR_AUTO = OrAuto()
NAMES, NUMBERS, COUNTS = Many(str, "names"), Many(float, "numbers"), Many(int, "whole numbers")


def with_settings(options: Iterable[tuple[str, Any, str]]) -> Callable[[Command], Command]:
    """Return a decorator that gives a command settings, each None unless it is given.

    Parameters
    ----------
    options : iterable of flag, type and help
        The defaults and the checks are those of the code that takes the settings.
    """

    def decorate(command: Command) -> Command:
        for flag, kind, text in reversed(list(options)):
            command = click.option(flag, type=kind, default=None, help=text)(command)
        return command

    return decorate
