"""A smallest set of requirements that cannot hold together, found by halving and confirmed one by one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from fleetplan.planner.questions.conflict.requirement import Requirement
from fleetplan.planner.search import Verdict

Oracle = Callable[[frozenset[str]], Verdict]
"""What is known of the fleet that keeps these requirements, by name, and no others."""


@dataclass(frozen=True, slots=True)
class Core:
    """Requirements in conflict.

    Attributes
    ----------
    requirements : tuple[Requirement, ...]
        Together they have no plan.
    minimal : bool
        Whether each one left out was shown to let the others hold; otherwise time was short.
    """

    requirements: tuple[Requirement, ...]
    minimal: bool


@dataclass(slots=True)
class CoreSearch:
    """Looks for cores; what was asked once is remembered.

    Attributes
    ----------
    oracle : callable
        Solves.
    late : callable
        Whether it had no time for some of what it was asked.
    """

    oracle: Oracle
    late: Callable[[], bool] = lambda: False
    _asked: dict[frozenset[str], Verdict] = field(default_factory=dict)

    def verdict(self, kept: Collection[str]) -> Verdict:
        """Verdict on the fleet that keeps these requirements alone."""
        key = frozenset(kept)
        if key not in self._asked:
            implied = self._implied(key)
            self._asked[key] = self.oracle(key) if implied is None else implied
        return self._asked[key]

    def note(self, kept: Collection[str], verdict: Verdict) -> None:
        """Remember what somebody else has found out."""
        self._asked[frozenset(kept)] = verdict

    def _implied(self, kept: frozenset[str]) -> Verdict | None:
        """Verdict that follows from larger and smaller sets asked before."""
        for other, verdict in self._asked.items():
            if verdict is Verdict.NO and other <= kept:
                return Verdict.NO
            if verdict is Verdict.YES and other >= kept:
                return Verdict.YES
        return None

    def core(self, universe: Sequence[Requirement]) -> Core | None:
        """A core among requirements, the first ones preferred.

        None where they are not known to conflict, giving all of them up would not help, or the time was too
        short to leave any of them out.
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
        """QuickXplain: what of `names` is needed beside the background for a conflict (Junker, AAAI 2004)."""
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
        """Deletion filter: leave out whatever the conflict does not need."""
        kept = list(names)
        for name in names:
            rest = [each for each in kept if each != name]
            if self.verdict(rest) is Verdict.NO:
                kept = rest
        return kept
