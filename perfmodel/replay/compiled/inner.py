"""How numba compiles the loops."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar, cast

import numba

_Function = TypeVar("_Function", bound=Callable[..., Any])

_njit: Final[Any] = numba.njit  # Its types leave some of its options out.

compiled: Final = partial(_njit, boundscheck=True, no_cfunc_wrapper=True)
"""Compile a function for Python. Indices are checked: a wrong one is an error, not a number."""


def inner(function: _Function) -> _Function:
    """Compile a function that only compiled functions call."""
    return cast(_Function, compiled(no_cpython_wrapper=True)(function))
