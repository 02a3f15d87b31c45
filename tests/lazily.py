"""Modules that a test imports when it first uses them.

Every process of `make test` imports all tests, and most run none of those that need torch, which takes a
second and a half to import.
"""

from __future__ import annotations

import importlib
from typing import Any


class Lazily:
    """A module that is imported when an attribute is read.

    Parameters
    ----------
    name : str
        Of the module.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        # pytest asks all that a file of tests holds whether it is a test or a fixture.
        if attribute.startswith("_"):
            raise AttributeError(attribute)
        return getattr(importlib.import_module(self._name), attribute)
