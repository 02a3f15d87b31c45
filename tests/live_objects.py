"""Objects that are still referred to: what a process that goes on would hold."""

from __future__ import annotations

import gc
from collections import Counter


def live_objects(kind: type) -> int:
    """Count the objects of a class, apart from garbage."""
    gc.collect()
    # Not `isinstance`: it asks a weak proxy for the class of an object that may be gone.
    return sum(issubclass(type(each), kind) for each in gc.get_objects())


def live_by_class(package: str) -> Counter[str]:
    """Count the objects of the classes of a package by their names, apart from garbage."""
    gc.collect()
    kinds = (type(each) for each in gc.get_objects())
    # Some foreign classes have a property of that name.
    return Counter(kind.__qualname__ for kind in kinds if str(kind.__module__).startswith(package))
