"""The families of fleets that benchmarks/solve.py solves, and what their search must reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks import fleets
from benchmarks.realistic import fleet as realistic
from benchmarks.realistic.sizes import Switch, switches_of


@dataclass(frozen=True, slots=True)
class SolveBar:
    """What a fleet must reach.

    Attributes
    ----------
    seconds : float
        Within this time. [s]
    gap_ratio : float or None
        The gap; None where any plan will do.
    each_seed : bool
        Whether the worst seed must reach it, not the median.
    """

    seconds: float
    gap_ratio: float | None
    each_seed: bool = False


@dataclass(frozen=True, slots=True)
class FleetFamily:
    """A generator of fleets.

    Attributes
    ----------
    sizes, variants : str
        What is solved where nothing else is asked for, joined by commas.
    write : callable
        Writes the fleet of a folder, size, seed and variant, and returns the path of its fleet.yaml.
    bars : callable
        The bars of a size and variant; none where the project has set none.
    """

    sizes: str
    variants: str
    write: Callable[[Path, str, int, str], Path]
    bars: Callable[[str, str], tuple[SolveBar, ...]]


RANDOM_BARS: Final[Mapping[tuple[str, str], tuple[SolveBar, ...]]] = {
    ("small", "plain"): (SolveBar(5, 0.001, each_seed=True),),
    ("medium", "plain"): (SolveBar(10, None), SolveBar(45, 0.03), SolveBar(120, 0.01)),
    ("medium", "head"): (SolveBar(60, 0.005),),
    ("large", "plain"): (SolveBar(120, 0.05), SolveBar(300, 0.02)),
    ("xl", "plain"): (SolveBar(1200, 0.10),),
}
"""Two cores; scarce variants have twice the gaps of the plain ones."""

SCARCE_FACTOR: Final = 2.0

TEAM_BAR: Final = SolveBar(30, 0.005)
COMPANY_BAR: Final = SolveBar(120, 0.01)
LARGE_COMPANY_BAR: Final = SolveBar(300, 0.02)

LONG_BAR: Final = SolveBar(240, 0.03)
"""Of a company whose variant multiplies the moments: parts of the day, demand scenarios, eight quarters."""

MULTIPLIES: Final = frozenset({Switch.DAY, Switch.DAY4, Switch.SCENARIOS, Switch.YEAR2})

FIRST_PLAN_S: Final = 20.0
"""Time in which every company has a first plan. [s]"""

PLAN_SHARE: Final = 0.5
"""Part of its time in which every fleet has a plan, whatever its size, seed and variant."""


def random_bars(size: str, variant: str) -> tuple[SolveBar, ...]:
    """The bars of a size and variant of the random family."""
    if variant.startswith("scarce"):
        return tuple(
            SolveBar(bar.seconds, SCARCE_FACTOR * bar.gap_ratio, bar.each_seed)
            for bar in RANDOM_BARS.get((size, "plain"), ())
            if bar.gap_ratio is not None
        )
    return RANDOM_BARS.get((size, variant), ())


def realistic_bars(size: str, variant: str) -> tuple[SolveBar, ...]:
    """The bars of a size and variant of the realistic family, the first plan of every seed among them.

    Raises
    ------
    KeyError
        If there is no such size.
    ValueError
        If there is no such variant.
    """
    gap = {"team": TEAM_BAR, "company": COMPANY_BAR, "large-company": LARGE_COMPANY_BAR}[size]
    if size == "company" and switches_of(variant) & MULTIPLIES:
        gap = LONG_BAR
    first_s = FIRST_PLAN_S if size == "company" else PLAN_SHARE * gap.seconds
    return SolveBar(first_s, None, each_seed=True), gap


def _write_random(folder: Path, size: str, seed: int, variant: str) -> Path:
    return fleets.write_fleet(folder, size, seed, fleets.Variant(variant))


FAMILIES: Final[Mapping[str, FleetFamily]] = {
    "random": FleetFamily(
        "small,medium,large",
        "plain,head,scarce-supply,scarce-budget,scarce-power",
        _write_random,
        random_bars,
    ),
    "realistic": FleetFamily(
        "team,company,large-company",
        "plain,day,region-loss,day+region-loss",
        realistic.write_fleet,
        realistic_bars,
    ),
}
