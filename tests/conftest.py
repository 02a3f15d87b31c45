"""Tests run as `plan` does, in one thread of OpenBLAS, and search no garbage among hundreds of modules."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from fleetplan.planner.commands.memory import calm_libraries, look_for_garbage_less_often

# Before anything imports numpy, which reads it once.
calm_libraries()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Import the tests without looking for garbage, and never look at what they import again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        look_for_garbage_less_often()
        gc.enable()
