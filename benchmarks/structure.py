"""Measure how the code is laid out, from its real imports, and draw it.

python benchmarks/structure.py                            the table; exit 1 if a goal is missed
python benchmarks/structure.py --draw docs/structure.svg  also draw the packages that are laid out in rooms

A package's rooms are its subpackages and the modules at its root. An arrow leads from one room to another if
a module of the first imports one of the second, anywhere: at the top, in a function, for types alone. Floors
count the rooms of the longest chain of arrows. Rooms that import each other in a circle share a floor, and an
arrow that does not lead to a lower floor leads up.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import grimp

ROOT_PACKAGE: Final = "fleetplan"
PACKAGES: Final = ("planner", "perfmodel", "fleet")

LOOSE_LIMIT: Final = 10
"""Modules at a root that a newcomer reads without a map: about a screen of a file browser, with the rooms."""

WIDEST_FLOOR: Final = 5
"""Rooms side by side that keep their names readable in a picture as wide as a page."""


@dataclass(frozen=True)
class StructureGoal:
    """What a package may have at most.

    Attributes
    ----------
    floors : int
        Rooms of the longest chain of imports.
    arrows : int
        Pairs of rooms of which one imports the other.
    """

    floors: int
    arrows: int


GOALS: Final = {
    "planner": StructureGoal(floors=12, arrows=90),
    "perfmodel": StructureGoal(floors=9, arrows=65),
    "fleet": StructureGoal(floors=5, arrows=20),
}
"""What each package may have; a package without a goal is measured and not judged."""


@dataclass(frozen=True)
class PackageStructure:
    """The rooms of a package.

    Attributes
    ----------
    package : str
        Its name below the root package.
    rooms : tuple[str, ...]
        Subpackages and loose modules, by name.
    loose : frozenset[str]
        Those that are one module.
    arrows : frozenset[tuple[str, str]]
        Importing and imported room.
    entrances : frozenset[str]
        Modules that other packages import.
    """

    package: str
    rooms: tuple[str, ...]
    loose: frozenset[str]
    arrows: frozenset[tuple[str, str]]
    entrances: frozenset[str]

    @cached_property
    def floor(self) -> Mapping[str, int]:
        """Floor of each room: 0 imports no other room, and rooms of a circle share one."""
        below = reached_from(self.rooms, self.arrows)
        floors: dict[str, int] = {}
        # A room reaches all that the rooms below it reach, and more: fewest first is bottom up.
        for room in sorted(self.rooms, key=lambda each: len(below[each] | {each})):
            circle = {other for other in below[room] if room in below[other]} | {room}
            floors[room] = max((floors[other] + 1 for other in below[room] - circle), default=0)
        return floors

    @property
    def floors(self) -> int:
        """Rooms of the longest chain of arrows."""
        return max(self.floor.values()) + 1

    @property
    def up(self) -> frozenset[tuple[str, str]]:
        """Arrows that do not lead to a lower floor."""
        return frozenset((a, b) for a, b in self.arrows if self.floor[a] <= self.floor[b])

    @property
    def direct(self) -> frozenset[tuple[str, str]]:
        """Arrows that no chain of others implies."""
        below = reached_from(self.rooms, self.arrows)
        return frozenset(
            (a, b)
            for a, b in self.arrows
            if not any(a == start and end != b and b in below[end] for start, end in self.arrows)
        )

    def missed(self) -> list[str]:
        """Return the goals that the package misses, in words."""
        goal = GOALS.get(self.package)
        if goal is None:
            return []
        figures = (
            ("loose modules", len(self.loose), LOOSE_LIMIT),
            ("floors", self.floors, goal.floors),
            ("arrows", len(self.arrows), goal.arrows),
            ("arrows up", len(self.up), 0),
        )
        return [
            f"{self.package}: {have} {name}, at most {most}" for name, have, most in figures if have > most
        ]


def reached_from(rooms: Iterable[str], arrows: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """Return the rooms that each room imports, directly or through others."""
    nearest = defaultdict(set)
    for a, b in arrows:
        nearest[a].add(b)
    reached: dict[str, set[str]] = {}
    for room in rooms:
        reached[room] = set()
        waiting = [room]
        while waiting:
            new = nearest[waiting.pop()] - reached[room]
            reached[room] |= new
            waiting += new
    return reached


def structure_of(graph: grimp.ImportGraph, package: str) -> PackageStructure:
    """Measure one package of the import graph."""
    root = f"{ROOT_PACKAGE}.{package}"
    children = graph.find_children(root)
    room_of = {
        module: child.removeprefix(f"{root}.")
        for child in children
        for module in {child} | graph.find_descendants(child)
    }
    arrows, entrances = set(), set()
    for importer in graph.modules:
        for imported in graph.find_modules_directly_imported_by(importer):
            if imported not in room_of:
                continue
            if importer not in room_of:
                entrances.add(imported)
            elif room_of[importer] != room_of[imported]:
                arrows.add((room_of[importer], room_of[imported]))
    return PackageStructure(
        package,
        tuple(sorted(child.removeprefix(f"{root}.") for child in children)),
        frozenset(child.removeprefix(f"{root}.") for child in children if not graph.find_children(child)),
        frozenset(arrows),
        frozenset(entrances),
    )


def table(structures: Sequence[PackageStructure]) -> str:
    """Return the measures of each package as text."""
    head = ("package", "loose modules", "rooms", "floors", "arrows", "arrows up", "imported from outside")
    rows = [
        (
            each.package,
            f"{len(each.loose)}",
            f"{len(each.rooms)}",
            f"{each.floors}",
            f"{len(each.arrows)}",
            f"{len(each.up)}",
            f"{len(each.entrances)} modules",
        )
        for each in structures
    ]
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in (head, *rows)
    )


def positions(structure: PackageStructure) -> dict[str, tuple[float, float]]:
    """Return where to draw each room: floors from the bottom, each ordered by the rooms that it imports."""
    places: dict[str, tuple[float, float]] = {}
    by_floor = defaultdict(list)
    for room in structure.rooms:
        by_floor[structure.floor[room]].append(room)
    level = 0.0
    for floor in sorted(by_floor):

        def centre(room: str) -> float:
            below = [places[b][0] for a, b in structure.direct if a == room and b in places]
            return sum(below) / len(below) if below else 0.0

        ordered = sorted(by_floor[floor], key=lambda room: (centre(room), room))
        for start in range(0, len(ordered), WIDEST_FLOOR):
            line = ordered[start : start + WIDEST_FLOOR]
            for place, room in enumerate(line):
                places[room] = (place - (len(line) - 1) / 2, level)
            level += 1.0
    return places


def draw(structures: Sequence[PackageStructure], path: Path) -> None:
    """Draw the rooms of each package by floor; arrows that a chain implies are left out."""
    import matplotlib as mpl  # noqa: PLC0415 - only a picture needs it
    from matplotlib.figure import Figure  # noqa: PLC0415

    # The text stays text, and two runs write the same file.
    mpl.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": ROOT_PACKAGE}
    heights = [max(y for _, y in positions(each).values()) + 1.6 for each in structures]
    figure = Figure(figsize=(7.2, 0.62 * sum(heights)), layout="constrained")
    panels = figure.subplots(len(structures), 1, height_ratios=heights, squeeze=False)
    for axes, each in zip(panels[:, 0], structures, strict=True):
        places = positions(each)
        for a, b in sorted(each.direct):
            axes.annotate(
                "",
                xy=(places[b][0], places[b][1] + 0.24),
                xytext=(places[a][0], places[a][1] - 0.24),
                arrowprops={"arrowstyle": "-|>", "color": "#9aa5b1", "lw": 0.8, "shrinkA": 0, "shrinkB": 0},
            )
        for room, (x, y) in places.items():
            box = {
                "boxstyle": "round,pad=0.35",
                "fc": "white" if room in each.loose else "#e4ecf5",
                "ec": "#1d4676",
            }
            axes.text(x, y, room, ha="center", va="center", fontsize=9, bbox=box)
        axes.set(
            xlim=(-WIDEST_FLOOR / 2, WIDEST_FLOOR / 2), ylim=(-0.6, max(y for _, y in places.values()) + 0.6)
        )
        axes.set_title(f"{each.package}/", loc="left", fontsize=10, fontweight="bold")
        axes.axis("off")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, draw what is asked for, and say which goals are missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--draw", type=Path, metavar="FILE", help="SVG or PNG of the packages laid out in rooms"
    )
    asked = parser.parse_args(arguments)
    graph = grimp.build_graph(ROOT_PACKAGE, cache_dir=None)
    structures = [structure_of(graph, package) for package in PACKAGES]
    print(table(structures))
    if asked.draw is not None:
        laid_out = [each for each in structures if len(each.loose) <= LOOSE_LIMIT]
        draw(laid_out, asked.draw)
        print(f"drawn to {asked.draw}: {', '.join(each.package for each in laid_out)}")
    missed = [line for each in structures for line in each.missed()]
    print("\n".join(missed) if missed else "all goals met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
