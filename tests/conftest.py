"""Tests run as `plan` does, in one thread of OpenBLAS, and search no garbage among hundreds of modules."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from fleetplan.planner.commands.memory import calm_libraries

# Before anything imports numpy, which reads it once.
calm_libraries()

ALLOCATIONS = (10_000, 20, 20)
"""After how many of them garbage is looked for: records of files that a test reads live as long as it."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Import the tests without looking for garbage, and never look at what they import again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(*ALLOCATIONS)
        gc.enable()
