"""What is said of a value that an option cannot take: the value itself, and what is allowed."""

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
"""What an option wants, by the kind of mistake as pydantic names it; of limits, what they are tells."""

_GROUPED: Final = 10_000
"""From here on a limit has commas."""


def say_allowed(error: typer.BadParameter) -> None:
    """Replace the message of the library that reads options, which names neither the value nor the limits.

    Parameters
    ----------
    error : typer.BadParameter
        Keeps its message where that is one of ours.
    """
    mistakes = getattr(error.__cause__, "errors", None)
    if mistakes is None:
        return
    mistake = mistakes()[0]
    value = mistake["input"]
    if mistake["type"] == "value_error":
        # Of names: `Value error, 'mien' is not one of 'mine', 'theirs'.`
        error.message = mistake["msg"].removeprefix("Value error, ").removesuffix(".")
    elif mistake["type"] in _NUMBERS:
        least, most = getattr(error.param, "min", None), getattr(error.param, "max", None)
        # Of an option for any number the library holds the limit as a float, however it is written here.
        limit = next(iter(mistake.get("ctx", {}).values()), 0.0)
        wanted = _NUMBERS[mistake["type"]] or ("a whole number" if isinstance(limit, int) else "a number")
        error.message = f"{value!r} is not {wanted}{_limits(least, most)}"


def _limits(least: Any, most: Any) -> str:
    """Limits in words, after what has them; either may be None."""
    if least is None:
        return "" if most is None else f" of {_figure(most)} or less"
    return f" of {_figure(least)} or more" if most is None else f" from {_figure(least)} to {_figure(most)}"


def _figure(limit: float) -> str:
    return f"{limit:,}" if abs(limit) >= _GROUPED else f"{limit:g}"
