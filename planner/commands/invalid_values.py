"""Messages for invalid option values: the value, and what is allowed."""

from __future__ import annotations

from typing import Any, Final

import typer

_NUMBERS: Final = {
    "float_parsing": "a number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a whole number",
    "int_from_float": "a whole number",
    "greater_than_equal": "",
    "less_than_equal": "",
}
"""Type that an option requires, by pydantic error type; limits imply their own type."""

_GROUPED: Final = 10_000
"""Smallest limit that is printed with thousands separators."""


def say_allowed(error: typer.BadParameter) -> None:
    """Replace the message of the option parser, which names neither the value nor the limits.

    Parameters
    ----------
    error : typer.BadParameter
        The parser's error; messages of this program stay.
    """
    mistakes = getattr(error.__cause__, "errors", None)
    if mistakes is None:
        return
    mistake = mistakes()[0]
    value = mistake["input"]
    if mistake["type"] == "value_error":
        # For names: `Value error, 'mien' is not one of 'mine', 'theirs'.`
        error.message = mistake["msg"].removeprefix("Value error, ").removesuffix(".")
    elif mistake["type"] in _NUMBERS:
        least, most = getattr(error.param, "min", None), getattr(error.param, "max", None)
        # For options of any number, the parser stores the limit as a float even if it is an integer here.
        limit = next(iter(mistake.get("ctx", {}).values()), 0.0)
        wanted = _NUMBERS[mistake["type"]] or ("a whole number" if isinstance(limit, int) else "a number")
        error.message = f"{value!r} is not {wanted}{_limits(least, most)}"


def _limits(least: Any, most: Any) -> str:
    """Return the limits in words, to follow the type; either may be None."""
    if least is None:
        return "" if most is None else f" of {_figure(most)} or less"
    return f" of {_figure(least)} or more" if most is None else f" from {_figure(least)} to {_figure(most)}"


def _figure(limit: float) -> str:
    return f"{limit:,}" if abs(limit) >= _GROUPED else f"{limit:g}"
