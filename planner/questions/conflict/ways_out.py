"""The least that would have to give: each amount is solved, and one step less is shown not to be enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.questions.conflict.core import CoreSearch
from fleetplan.planner.questions.conflict.requirement import Requirement, RequirementKind
from fleetplan.planner.search import Verdict

MOST_STEPS: Final = 2**20
"""Steps that are tried of what has no end; a fleet that needs more of one thing needs something else."""


@dataclass(frozen=True, slots=True)
class Give:
    """How far one requirement gives way.

    Attributes
    ----------
    requirement : Requirement
        What gives.
    steps : int
        Steps that are enough; 0 where it is dropped as a whole.
    least : bool
        Whether one step less was proven not to be enough.
    """

    requirement: Requirement
    steps: int
    least: bool

    def laid_on(self, fleet: Fleet) -> Fleet:
        """The fleet with the requirement relaxed."""
        if self.requirement.steps is None or self.steps == 0:
            return self.requirement.drop(fleet)
        return self.requirement.steps.relax(fleet, self.steps)

    @property
    def text(self) -> str:
        """Name the requirement that gives way, with the amount."""
        if self.requirement.steps is None or self.steps == 0:
            return f"without: {self.requirement.name}"
        return self.requirement.steps.text(self.steps)


@dataclass(frozen=True, slots=True)
class WayOut:
    """Requirements that give way together, after which there is a plan.

    Attributes
    ----------
    gives : tuple[Give, ...]
        What gives; none of them can be left out.
    """

    gives: tuple[Give, ...]

    def laid_on(self, fleet: Fleet) -> Fleet:
        """The fleet that this way out leads to."""
        for give in self.gives:
            fleet = give.laid_on(fleet)
        return fleet

    @property
    def serves_everything(self) -> bool:
        """Whether no demand is given up."""
        return all(give.requirement.kind is not RequirementKind.DEMAND for give in self.gives)

    @property
    def least(self) -> bool:
        """Whether no part of it can give less, all others alike."""
        return all(give.least for give in self.gives)


def ways_out(
    fleet: Fleet,
    universe: Sequence[Requirement],
    first_core: Sequence[Requirement],
    cores: CoreSearch,
    feasible: Callable[[Fleet], Verdict],
) -> Iterator[WayOut]:
    """Yield ways out of an infeasible fleet, one for each requirement of its first core that leads to one.

    Parameters
    ----------
    fleet : Fleet
        Without a plan.
    universe : Sequence[Requirement]
        All that could give.
    first_core : Sequence[Requirement]
        A core of them: every way out gives up something of it.
    cores : CoreSearch
        Asked for further cores where giving up one requirement is not enough.
    feasible : callable
        What is known of a fleet.

    Yields
    ------
    WayOut
        Those for which a plan is known, as soon as it is. Where time is short some are left out.
    """
    found: list[WayOut] = []
    for first in first_core:
        picked = _enough(first, universe, cores)
        if picked is None:
            continue
        way = _least(fleet, picked, feasible)
        known = [{give.requirement.name for give in other.gives} for other in found]
        if {give.requirement.name for give in way.gives} not in known:
            found.append(way)
            yield way


def _enough(
    first: Requirement, universe: Sequence[Requirement], cores: CoreSearch
) -> list[Requirement] | None:
    """Requirements to drop, this one first, until the others can hold; none of them for nothing."""
    picked = [first]
    while True:
        rest = [each for each in universe if each not in picked]
        verdict = cores.verdict([each.name for each in rest])
        if verdict is Verdict.YES:
            break
        core = None if verdict is Verdict.UNKNOWN else cores.core(rest)
        if core is None:
            return None
        # What is of the same kind comes first: hosts with hosts, limits with limits; demand comes last.
        picked.append(
            min(
                core.requirements,
                key=lambda each: (each.kind is not first.kind, each.kind is RequirementKind.DEMAND),
            )
        )
    for each in list(picked):
        others = [other for other in picked if other is not each]
        rest = [other for other in universe if other not in others]
        if others and cores.verdict([other.name for other in rest]) is Verdict.YES:
            picked = others
    return picked


def _least(fleet: Fleet, picked: Sequence[Requirement], feasible: Callable[[Fleet], Verdict]) -> WayOut:
    """The least steps of each requirement in turn, the others as far as they have come."""
    gives = {each.name: Give(each, 0, each.steps is None) for each in picked}
    for requirement in picked:
        if requirement.steps is None:
            continue
        others = [give for name, give in gives.items() if name != requirement.name]

        def verdict(
            steps: int, requirement: Requirement = requirement, others: Sequence[Give] = others
        ) -> Verdict:
            return feasible(WayOut((*others, Give(requirement, steps, False))).laid_on(fleet))

        steps, least = least_steps(verdict, requirement.steps.most)
        if steps is None:
            # No amount that was tried is enough, giving it up as a whole is.
            continue
        gives[requirement.name] = Give(requirement, steps, least)
    return WayOut(tuple(gives.values()))


def least_steps(verdict: Callable[[int], Verdict], most: int | None) -> tuple[int | None, bool]:
    """The fewest steps that are known to be enough, and whether one less is proven not to be.

    Parameters
    ----------
    verdict : callable
        What is known after so many steps; more steps never hurt, and none are not enough.
    most : int or None
        Steps that are known to be enough; None where none are known.

    Returns
    -------
    tuple[int or None, bool]
        None where nothing up to `MOST_STEPS` is known to be enough.
    """
    asked: dict[int, Verdict] = {0: Verdict.NO}
    low, high = 0, 1
    ceiling = MOST_STEPS if most is None else most
    while True:
        high = min(high, ceiling)
        asked[high] = verdict(high)
        if asked[high] is Verdict.YES:
            break
        if high == ceiling:
            return None, False
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        asked[middle] = verdict(middle)
        if asked[middle] is Verdict.YES:
            high = middle
        else:
            low = middle
    return high, asked[high - 1] is Verdict.NO


def named(universe: Sequence[Requirement]) -> Mapping[str, Requirement]:
    """Requirements by their names, which are theirs alone."""
    by_name = {requirement.name: requirement for requirement in universe}
    if len(by_name) != len(universe):
        raise ValueError("two requirements have one name")
    return by_name
