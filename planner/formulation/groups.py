"""The groups of decision variables: what each decides, read from its key, and whether it is continuous.

This is the one list of the groups. Whoever needs all variables, the continuous ones, those whose values make
a plan, or the service and moment of a variable asks here. A new group takes a field of `Variables`, a line of
`GROUPS`, and a field of `Solution` where it is `kept`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final, NamedTuple

from ortools.sat.python import cp_model

from fleetplan.planner.formulation.variables import Variables
from fleetplan.planner.problem import Problem, Slot


class Part(Enum):
    """What one part of a variable's key names: an index into the problem, or a name."""

    CANDIDATE = auto()
    POOL = auto()
    MOMENT = auto()
    CELL = auto()
    SERVICE = auto()
    OTHER = auto()
    """A class, pair, region, period, offer, line or pattern."""


class Place(NamedTuple):
    """What one variable decides about.

    Attributes
    ----------
    service : str or None
        The service that it places; None for supply and for what services share.
    moment : int or None
        Index of the moment; None where it concerns several.
    slot : Slot or None
        The candidate and the pool whose use it decides.
    home : int or None
        Index of the moment whose offline work it leaves in that moment.
    """

    service: str | None = None
    moment: int | None = None
    slot: Slot | None = None
    home: int | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """One group of `Variables`.

    Attributes
    ----------
    name : str
        Name of the field.
    key : tuple[Part, ...]
        What the parts of a variable's key name.
    continuous : bool
        Whether a relaxation may take fractions: loads and rates, which are finely divided anyway.
    kept : bool
        Whether a plan is made of its values: `Solution` has a field of this name.
    growth : int
        1 where more of it is more supply, -1 where it is less, 0 where it is no supply.
    """

    name: str
    key: tuple[Part, ...]
    continuous: bool = False
    kept: bool = False
    growth: int = 0

    def of(self, variables: Variables) -> Mapping[Any, cp_model.IntVar]:
        """The variables of the group by their keys."""
        members: Mapping[Any, cp_model.IntVar] = getattr(variables, self.name)
        return members

    def placer(self, problem: Problem) -> Callable[[tuple[Any, ...]], Place]:
        """Return what reads from a variable's key what it decides about.

        Work that one cell leaves to another is in no one moment.
        """
        at = {part: position for position, part in enumerate(self.key)}
        c, p, m, i = (at.get(part) for part in (Part.CANDIDATE, Part.POOL, Part.MOMENT, Part.CELL))
        if self.key.count(Part.CELL) > 1:

            def of_work(key: tuple[Any, ...]) -> Place:
                cell = problem.cells[key[0]]
                return Place(cell.service, home=cell.moment if key[0] == key[1] else None)

            return of_work

        def of(key: tuple[Any, ...]) -> Place:
            cell = None if i is None else problem.cells[key[i]]
            service: str | None = key[at[Part.SERVICE]] if Part.SERVICE in at else None
            if c is not None:
                service = problem.candidates[key[c]].service
            elif cell is not None:
                service = cell.service
            moment = cell.moment if cell is not None else None if m is None else key[m]
            return Place(service, moment, None if c is None or p is None else (key[c], key[p]))

        return of

    def renumbered(
        self,
        values: Mapping[Any, int],
        moments: Sequence[int] | None = None,
        cells: Sequence[int] | None = None,
    ) -> dict[Any, int]:
        """Values of a part of a problem by the keys of the whole.

        Parameters
        ----------
        values : Mapping
            By the keys of the part.
        moments, cells : Sequence[int] or None
            For each moment and cell of the part its index in the whole; None where they are the same.
        """
        number = {Part.MOMENT: moments, Part.CELL: cells}
        maps = [number.get(part) for part in self.key]
        return {
            tuple(each if new is None else new[each] for new, each in zip(maps, key, strict=True)): value
            for key, value in values.items()
        }


_C, _P, _M, _I, _S, _X = Part.CANDIDATE, Part.POOL, Part.MOMENT, Part.CELL, Part.SERVICE, Part.OTHER

GROUPS: Final[tuple[Group, ...]] = (
    Group("replicas", (_C, _P, _M), kept=True),
    Group("load", (_C, _X, _P, _I), continuous=True, kept=True),
    Group("disaggregated", (_I, _X, _X), continuous=True, kept=True),
    Group("unmet", (_I, _X), continuous=True, kept=True),
    Group("worked", (_I, _X), continuous=True),
    Group("put_off", (_I, _I, _X), continuous=True, kept=True),
    Group("switched", (_C, _P, _M)),
    Group("acquired", (_P, _X, _X), kept=True, growth=1),
    Group("in_use", (_P, _M)),
    Group("configuration", (_C, _X, _M)),
    Group("packed", (_P, _M, _X), kept=True),
    Group("started", (_C, _P, _M)),
    Group("surviving", (_X, _C, _P, _M)),
    Group("surviving_load", (_X, _C, _X, _P, _M), continuous=True, kept=True),
    Group("surviving_separate", (_X, _S, _X, _X, _M), continuous=True, kept=True),
    Group("surviving_pooled", (_X, _C, _P, _M, _X)),
    Group("surviving_pooled_replicas", (_X, _C, _P, _M, _X)),
    Group("retired", (_P, _X), kept=True, growth=-1),
    Group("pooled", (_C, _P, _M, _X)),
    Group("pooled_replicas", (_C, _P, _M, _X)),
    Group("lots", (_P, _X, _X), growth=1),
    Group("regret", (_X,), continuous=True),
)
"""Every group, once."""

KEPT: Final = tuple(group for group in GROUPS if group.kept)
"""Those whose values make a plan."""


def all_variables(variables: Variables) -> Iterator[cp_model.IntVar]:
    """Every variable of all groups."""
    for group in GROUPS:
        yield from group.of(variables).values()


def continuous_indices(variables: Variables) -> frozenset[int]:
    """Indices of the variables that a relaxation need not keep whole."""
    return frozenset(
        variable.index for group in GROUPS if group.continuous for variable in group.of(variables).values()
    )


def places(problem: Problem, variables: Variables) -> Iterator[tuple[Group, Place, cp_model.IntVar]]:
    """Every variable with its group and its place."""
    for group in GROUPS:
        place = group.placer(problem)
        for key, variable in group.of(variables).items():
            yield group, place(key), variable
