"""The groups of decision variables: what each decides, read from its key, and whether it is continuous.

This is the one list of the groups. Whoever needs all variables, the continuous ones, or the service and
moment of a variable asks here, so a new group is named once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ortools.sat.python import cp_model

from fleetplan.planner.formulation.variables import Variables
from fleetplan.planner.problem import Problem, Slot


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


NOWHERE: Final = Place()


@dataclass(frozen=True, slots=True)
class Group:
    """One group of `Variables`.

    Attributes
    ----------
    name : str
        Name of the field.
    place : callable
        Place of a variable, from the problem and the variable's key.
    continuous : bool
        Whether a relaxation may take fractions: loads and rates, which are finely divided anyway.
    growth : int
        1 where more of it is more supply, -1 where it is less, 0 where it is no supply.
    """

    name: str
    place: Callable[[Problem, Any], Place]
    continuous: bool = False
    growth: int = 0

    def of(self, variables: Variables) -> Mapping[Any, cp_model.IntVar]:
        """The variables of the group by their keys."""
        members: Mapping[Any, cp_model.IntVar] = getattr(variables, self.name)
        return members


def _of_slot(problem: Problem, key: tuple[int, ...]) -> Place:
    """Place by a key that begins with candidate, pool and moment."""
    return Place(problem.candidates[key[0]].service, key[2], (key[0], key[1]))


def _of_load(problem: Problem, key: tuple[int, int, int, int]) -> Place:
    """Place by candidate, class, pool and cell."""
    c, _, p, cell = key
    return Place(problem.candidates[c].service, problem.cells[cell].moment, (c, p))


def _of_cell(problem: Problem, key: tuple[int, ...]) -> Place:
    """Place by a key that begins with a cell."""
    cell = problem.cells[key[0]]
    return Place(cell.service, cell.moment)


def _of_work(problem: Problem, key: tuple[int, int, int]) -> Place:
    """Place of work that one cell leaves to another, or does itself: a service's, in no one moment."""
    cell = problem.cells[key[0]]
    return Place(cell.service, home=cell.moment if key[0] == key[1] else None)


def _of_pool(_: Problem, key: tuple[Any, ...]) -> Place:
    """Place by a key that begins with pool and moment."""
    return Place(moment=key[1])


def _of_configuration(problem: Problem, key: tuple[int, str, int]) -> Place:
    """Place by candidate, region and moment."""
    return Place(problem.candidates[key[0]].service, key[2])


def _of_survival(problem: Problem, key: tuple[Any, ...]) -> Place:
    """Place by lost region, candidate, pool and moment."""
    _, c, p, m, *_ = key
    return Place(problem.candidates[c].service, m, (c, p))


def _of_surviving_load(problem: Problem, key: tuple[str, int, int, int, int]) -> Place:
    """Place by lost region, candidate, class, pool and moment."""
    _, c, _, p, m = key
    return Place(problem.candidates[c].service, m, (c, p))


def _of_surviving_separate(_: Problem, key: tuple[str, str, int, int, int]) -> Place:
    """Place by lost region, service, class, pair and moment."""
    return Place(key[1], key[4])


def _nowhere(_: Problem, __: object) -> Place:
    """Place of what concerns all services and several moments."""
    return NOWHERE


GROUPS: Final[tuple[Group, ...]] = (
    Group("replicas", _of_slot),
    Group("load", _of_load, continuous=True),
    Group("disaggregated", _of_cell, continuous=True),
    Group("unmet", _of_cell, continuous=True),
    Group("worked", _of_cell, continuous=True),
    Group("put_off", _of_work, continuous=True),
    Group("switched", _of_slot),
    Group("acquired", _nowhere, growth=1),
    Group("in_use", _of_pool),
    Group("configuration", _of_configuration),
    Group("packed", _of_pool),
    Group("started", _of_slot),
    Group("surviving", _of_survival),
    Group("surviving_load", _of_surviving_load, continuous=True),
    Group("surviving_separate", _of_surviving_separate, continuous=True),
    Group("surviving_pooled", _of_survival),
    Group("surviving_pooled_replicas", _of_survival),
    Group("retired", _nowhere, growth=-1),
    Group("pooled", _of_slot),
    Group("pooled_replicas", _of_slot),
    Group("lots", _nowhere, growth=1),
    Group("regret", _nowhere, continuous=True),
)
"""Every group, once."""


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
        for key, variable in group.of(variables).items():
            yield group, group.place(problem, key), variable
