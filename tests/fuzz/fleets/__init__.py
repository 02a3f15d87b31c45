"""Random valid fleet files, the same for the same seed; `random_fleet` makes one."""

from tests.fuzz.fleets.fleet import random_fleet
from tests.fuzz.fleets.made import Made

__all__ = ["Made", "random_fleet"]
