"""Find a minimal conflict among requirements by bisection, and confirm it by deletion."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from fleetplan.planner.questions.conflict.requirement import Requirement
from fleetplan.planner.search import Verdict

Oracle = Callable[[frozenset[str]], Verdict]
"""Feasibility of the fleet with only these requirements, by name."""


@dataclass(frozen=True, slots=True)
class Core:
    """Requirements in conflict.

    Attributes
    ----------
    requirements : tuple[Requirement, ...]
        Requirements that are infeasible together.
    minimal : bool
        Whether the set is proven minimal: without any one requirement, the others are feasible.
    """

    requirements: tuple[Requirement, ...]
    minimal: bool


@dataclass(slots=True)
class CoreSearch:
    """Searches for conflicts, with a cache of verdicts.

    Attributes
    ----------
    oracle : callable
        Decides the feasibility of a set of requirements.
    late : callable
        Returns whether some questions were left undecided for lack of time.
    """

    oracle: Oracle
    late: Callable[[], bool] = lambda: False
    _asked: dict[frozenset[str], Verdict] = field(default_factory=dict)

    def verdict(self, kept: Collection[str]) -> Verdict:
        """Return the verdict on the fleet with only these requirements."""
        key = frozenset(kept)
        if key not in self._asked:
            implied = self._implied(key)
            self._asked[key] = self.oracle(key) if implied is None else implied
        return self._asked[key]

    def note(self, kept: Collection[str], verdict: Verdict) -> None:
        """Store a verdict found elsewhere."""
        self._asked[frozenset(kept)] = verdict

    def _implied(self, kept: frozenset[str]) -> Verdict | None:
        """Return the verdict implied by cached supersets and subsets, or None."""
        for other, verdict in self._asked.items():
            if verdict is Verdict.NO and other <= kept:
                return Verdict.NO
            if verdict is Verdict.YES and other >= kept:
                return Verdict.YES
        return None

    def core(self, universe: Sequence[Requirement]) -> Core | None:
        """Return a minimal conflict among requirements, preferring the first ones.

        None if they are not known to conflict, if dropping all of them would not help, or if the time was too
        short to drop any.
        """
        names = [requirement.name for requirement in universe]
        if self.verdict(names) is not Verdict.NO:
            return None
        found = self._conflict([], False, names)
        if self.verdict(found) is not Verdict.NO:
            found = names
        kept = self._filtered(found)
        if not kept or (self.late() and len(kept) == len(names)):
            return None
        minimal = all(self.verdict([name for name in kept if name != each]) is Verdict.YES for each in kept)
        return Core(tuple(each for each in universe if each.name in kept), minimal)

    def _conflict(self, background: list[str], grown: bool, names: list[str]) -> list[str]:
        """Return the names that conflict with the background (QuickXplain: Junker, AAAI 2004)."""
        if grown and self.verdict(background) is Verdict.NO:
            return []
        if len(names) <= 1:
            return names
        half = len(names) // 2
        first, second = names[:half], names[half:]
        of_second = self._conflict(background + first, True, second)
        of_first = self._conflict(background + of_second, bool(of_second), first)
        return of_first + of_second

    def _filtered(self, names: list[str]) -> list[str]:
        """Remove every requirement that the conflict does not need (deletion filter)."""
        kept = list(names)
        for name in names:
            rest = [each for each in kept if each != name]
            if self.verdict(rest) is Verdict.NO:
                kept = rest
        return kept
