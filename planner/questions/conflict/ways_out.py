"""Find resolutions of a conflict: solve each amount, and show that one step less is not enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.questions.conflict.core import CoreSearch
from fleetplan.planner.questions.conflict.requirement import Requirement, RequirementKind
from fleetplan.planner.search import Verdict

MOST_STEPS: Final = 2**20
"""Maximum number of steps tried for an unbounded requirement; needing more points to another conflict."""


@dataclass(frozen=True, slots=True)
class Concession:
    """Relaxation of one requirement.

    Attributes
    ----------
    requirement : Requirement
        Relaxed requirement.
    steps : int
        Number of steps that is enough; 0 if the requirement is dropped.
    least : bool
        Whether one step less is proven not to be enough.
    """

    requirement: Requirement
    steps: int
    least: bool

    def laid_on(self, fleet: Fleet) -> Fleet:
        """Return the fleet with the requirement relaxed."""
        if self.requirement.steps is None or self.steps == 0:
            return self.requirement.drop(fleet)
        return self.requirement.steps.relax(fleet, self.steps)

    @property
    def text(self) -> str:
        """Name of the relaxed requirement, with the amount."""
        if self.requirement.steps is None or self.steps == 0:
            return f"without: {self.requirement.name}"
        return self.requirement.steps.text(self.steps)


@dataclass(frozen=True, slots=True)
class WayOut:
    """Requirements that make a plan feasible when relaxed together.

    Attributes
    ----------
    gives : tuple[Concession, ...]
        Relaxations, none of which can be left out.
    """

    gives: tuple[Concession, ...]

    def laid_on(self, fleet: Fleet) -> Fleet:
        """Return the fleet after this resolution."""
        for give in self.gives:
            fleet = give.laid_on(fleet)
        return fleet

    @property
    def serves_everything(self) -> bool:
        """Return whether all demand is still served."""
        return all(give.requirement.kind is not RequirementKind.DEMAND for give in self.gives)

    @property
    def least(self) -> bool:
        """Return whether no relaxation can be smaller while the others stay the same."""
        return all(give.least for give in self.gives)


def ways_out(
    fleet: Fleet,
    universe: Sequence[Requirement],
    first_core: Sequence[Requirement],
    cores: CoreSearch,
    feasible: Callable[[Fleet], Verdict],
) -> Iterator[WayOut]:
    """Yield resolutions of an infeasible fleet, at most one per requirement of the first conflict.

    Parameters
    ----------
    fleet : Fleet
        Infeasible fleet.
    universe : Sequence[Requirement]
        All requirements that can be relaxed.
    first_core : Sequence[Requirement]
        A conflict among them; every resolution relaxes one of its requirements.
    cores : CoreSearch
        Finds further conflicts if relaxing one requirement is not enough.
    feasible : callable
        Decides the feasibility of a fleet.

    Yields
    ------
    WayOut
        Resolutions with a known plan, as soon as it is known. Some may be missing if the time is short.
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
    """Return requirements to drop, starting with this one, until the others are feasible."""
    picked = [first]
    while True:
        rest = [each for each in universe if each not in picked]
        verdict = cores.verdict([each.name for each in rest])
        if verdict is Verdict.YES:
            break
        core = None if verdict is Verdict.UNKNOWN else cores.core(rest)
        if core is None:
            return None
        # Prefer the same kind: hosts with hosts, limits with limits; demand comes last.
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
    """Minimise the steps of each requirement in turn, with the others at their current steps."""
    gives = {each.name: Concession(each, 0, each.steps is None) for each in picked}
    for requirement in picked:
        if requirement.steps is None:
            continue
        others = [give for name, give in gives.items() if name != requirement.name]

        def verdict(
            steps: int, requirement: Requirement = requirement, others: Sequence[Concession] = others
        ) -> Verdict:
            return feasible(WayOut((*others, Concession(requirement, steps, False))).laid_on(fleet))

        steps, least = least_steps(verdict, requirement.steps.most)
        if steps is None:
            # No tried amount is enough, but dropping the requirement is.
            continue
        gives[requirement.name] = Concession(requirement, steps, least)
    return WayOut(tuple(gives.values()))


def least_steps(verdict: Callable[[int], Verdict], most: int | None) -> tuple[int | None, bool]:
    """Return the fewest steps known to be enough, and whether one less is proven insufficient.

    Parameters
    ----------
    verdict : callable
        Verdict after a number of steps; more steps never hurt, and zero steps are not enough.
    most : int or None
        Steps known to be enough, or None.

    Returns
    -------
    tuple[int or None, bool]
        None if no number of steps up to `MOST_STEPS` is known to be enough.
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
    """Return requirements by name; names must be unique."""
    by_name = {requirement.name: requirement for requirement in universe}
    if len(by_name) != len(universe):
        raise ValueError("two requirements have one name")
    return by_name
