"""A random fleet under construction: its dice, names, allowed keys, and files."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fleetplan.fleet.document.plain import yaml_text

ONE_PERIOD = "now"
ONE_REGION = "default"

DENSITIES = (0.06, 0.2, 0.45)
"""How many of its optional keys a block has: few, as people write them, some, or as many as go together."""

DECADES = (-1.7, 0.3)
"""Powers of ten by which the demands of a fleet are spread, where they are."""

SPREAD_EVERY = 3
"""One fleet in so many has demands that differ by decades."""


@dataclass
class Made:
    """A fleet file as a mapping, and the files that it names.

    Attributes
    ----------
    seed : int
        Of the dice.
    keys : Collection[str] or None
        The keys that it may have; all without any.
    most_cells : int
        Regions, periods, slices and scenarios together.
    """

    seed: int
    dice: random.Random
    keys: Collection[str] | None = None
    most_cells: int = 6
    file: dict[str, Any] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    periods: tuple[str, ...] = (ONE_PERIOD,)
    regions: tuple[str, ...] = (ONE_REGION,)
    parts: tuple[str, ...] = ()
    figured: tuple[str, ...] = ()
    """Parts with the figures that a model needs."""
    slices: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    objective: str = "tco"
    counts_kv: bool = False
    """Whether links for KV caches may be limited."""
    n_services: int | None = None
    density: float = 0.2
    dice_by_draw: dict[str, random.Random] = field(default_factory=dict)
    """Dice of `dice_of`, by draw."""

    def write(self, folder: Path) -> Path:
        """Write the file and what it names; return the file's path."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in self.tables.items():
            (folder / name).write_text(text, encoding="utf-8")
        path = folder / "fleet.yaml"
        path.write_text(yaml_text(self.file), encoding="utf-8")
        return path

    def allows(self, key: str) -> bool:
        """Return whether the fleet may have a key."""
        return self.keys is None or key in self.keys

    def begin_block(self) -> None:
        """Draw how many of its keys the next block has."""
        self.density = self.dice.choice(DENSITIES)

    def wants(self, key: str, probability: float | None = None) -> bool:
        """Draw whether the block at hand has a key: as dense as the block, or with a probability."""
        wanted = self.chance(self.density if probability is None else probability)
        return wanted and self.allows(key)

    def chance(self, probability: float) -> bool:
        """Throw the dice."""
        return self.dice.random() < probability

    def figure(self, low: float, high: float, digits: int = 2) -> float:
        """Return a number between two others."""
        return round(self.dice.uniform(low, high), digits)

    def dice_of(self, draw: str) -> random.Random:
        """Return the dice of one draw, so that fleets are otherwise the same with and without it.

        Keys that were added to the schema later draw with these: the seeds that tests name keep their fleets.
        """
        return self.dice_by_draw.setdefault(draw, random.Random(f"{draw} {self.seed}"))

    def demand(self, rate: float) -> float:
        """Return a demand of that size; in some fleets, it is decades away from it."""
        if self.seed % SPREAD_EVERY != 2:
            return round(rate, 2)
        return float(f"{rate * 10 ** self.dice_of('spread of').uniform(*DECADES):.3g}")

    def by_period(self, low: float, high: float, digits: int = 2) -> Any:
        """Return a number, or now and then one for each period."""
        if len(self.periods) > 1 and self.chance(0.4):
            return {name: self.figure(low, high, digits) for name in self.periods}
        return self.figure(low, high, digits)

    @property
    def quarters(self) -> bool:
        """Whether the periods are quarters."""
        return self.periods != (ONE_PERIOD,)
