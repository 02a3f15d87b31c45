"""A random fleet in the making: its dice, its names, and what it is written to."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml


@dataclass
class RandomFleet:
    """A fleet file as a mapping, and its engine tables by name."""

    seed: int
    dice: random.Random
    file: dict[str, Any] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    periods: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    slices: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()

    def write(self, folder: Path) -> Path:
        """Write the file and its tables; return the file's path."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in self.tables.items():
            (folder / name).write_text(text, encoding="utf-8")
        path = folder / "fleet.yaml"
        path.write_text(yaml.safe_dump(self.file, sort_keys=False), encoding="utf-8")
        return path

    def chance(self, probability: float) -> bool:
        """Throw the dice."""
        return self.dice.random() < probability

    def figure(self, low: float, high: float, digits: int = 2) -> float:
        """Return a number between two others."""
        return round(self.dice.uniform(low, high), digits)

    def by_period(self, low: float, high: float, digits: int = 2) -> Any:
        """Return a number, or now and then one for each period."""
        if len(self.periods) > 1 and self.chance(0.4):
            return {name: self.figure(low, high, digits) for name in self.periods}
        return self.figure(low, high, digits)
