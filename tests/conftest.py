"""What the import of hundreds of modules leaves in memory is not searched for garbage while tests run."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

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
