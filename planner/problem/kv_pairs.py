"""Pairs of prefill and decode replicas that may hand over requests, and the links between them.

Pairs depend on the variant of both, the reach of a KV transfer, the hardware declared compatible, the links
between regions, and the time that a transfer may take. Replicas with the same partners form one group, so a
fleet in which everything pairs within its region has one pair and no extra variables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from fleetplan.planner.problem.candidate import Phase, Slot
from fleetplan.planner.problem.problem import Problem

Kind: TypeAlias = tuple[str, int, tuple[bool, ...], float | None]
"""Properties of a slot that decide its pairs: variant, pool, added times it can afford, and KV cache."""

Partners: TypeAlias = Mapping[Kind, tuple[int, ...]]
"""Links to every kind that a kind pairs with."""


@dataclass(frozen=True, slots=True)
class SlotGroup:
    """Slots with the same partners.

    Attributes
    ----------
    slots : tuple[Slot, ...]
        Candidates in pools.
    label : str
        Label in solvers; empty for the only group of a phase.
    """

    slots: tuple[Slot, ...]
    label: str


@dataclass(frozen=True, slots=True)
class Pair:
    """Group of prefill slots and group of decode slots between which requests may pass.

    Attributes
    ----------
    prefill, decode : int
        Indices of the groups.
    links : tuple[int, ...]
        Indices of the fleet's KV links that each request uses.
    kv_gb : float or None
        KV cache of a request; None if no link counts it. [GB]
    label : str
        Label in solvers; empty for the only pair.
    """

    prefill: int
    decode: int
    links: tuple[int, ...]
    kv_gb: float | None
    label: str


@dataclass(frozen=True, slots=True)
class KvPairs:
    """All pairs of one class of a service.

    Attributes
    ----------
    prefill, decode : tuple[SlotGroup, ...]
        Groups with at least one partner.
    pairs : tuple[Pair, ...]
        Their pairs.
    """

    prefill: tuple[SlotGroup, ...] = ()
    decode: tuple[SlotGroup, ...] = ()
    pairs: tuple[Pair, ...] = ()

    def groups(self, phase: Phase) -> tuple[SlotGroup, ...]:
        """Return the groups of a phase."""
        return self.prefill if phase is Phase.PREFILL else self.decode

    def pairs_of(self, phase: Phase, group: int) -> list[int]:
        """Return the indices of a group's pairs."""
        return [
            index
            for index, pair in enumerate(self.pairs)
            if (pair.prefill if phase is Phase.PREFILL else pair.decode) == group
        ]


def cell_pairs(problem: Problem) -> dict[tuple[int, int], KvPairs]:
    """Return the pairs of every cell and class, by (cell index, class index)."""
    known: dict[tuple[str, str, int], KvPairs] = {}
    found = {}
    for index, cell in enumerate(problem.cells):
        for k in range(len(cell.requests_per_s)):
            place = (cell.service, cell.region, k)
            if place not in known:
                slots = [slot for slot in problem.slots(cell) if problem.may_serve(slot, k, cell.region)]
                known[place] = kv_pairs_of(problem, slots, k, _spare(problem, k, cell.region))
            found[index, k] = known[place]
    return found


def _spare(problem: Problem, k: int, origin: str) -> Callable[[Slot], float]:
    """Return a function from slots to the time that their TTFT limit leaves for a transfer. [ms]"""

    def spare_ms(slot: Slot) -> float:
        return problem.spare_ms(slot[0], k) - problem.round_trip_ms(origin, problem.pools[slot[1]].region)

    return spare_ms


def surviving_pairs(problem: Problem, service: str, k: int, lost: str) -> KvPairs:
    """Return the pairs of a class in the regions that remain; travel time does not count then."""
    slots = [
        (c, p)
        for c in problem.candidates_of(service)
        for region in problem.regions
        if region != lost
        for p in problem.pools_for(problem.candidates[c], region)
        if problem.candidates[c].requests_per_s[k] > 0
    ]
    return kv_pairs_of(problem, slots, k, lambda _: float("inf"))


def kv_pairs_of(
    problem: Problem, slots: Sequence[Slot], k: int, spare_ms: Callable[[Slot], float]
) -> KvPairs:
    """Return groups and pairs among slots that can serve a class.

    Parameters
    ----------
    problem : Problem
        Sets and data.
    slots : Sequence[Slot]
        Candidates of one service in pools.
    k : int
        Index of the class.
    spare_ms : callable
        Time left for a transfer within a prefill slot's TTFT limit. [ms]
    """
    prefill: dict[Kind, list[Slot]] = {}
    decode: dict[Kind, list[Slot]] = {}
    receiving = dict.fromkeys(p for c, p in slots if problem.candidates[c].phase is Phase.DECODE)
    for slot in slots:
        candidate = problem.candidates[slot[0]]
        if candidate.phase is Phase.PREFILL:
            times = _added_times(problem, slot[1], tuple(receiving))
            bears = tuple(spare_ms(slot) >= time for time in times)
            cache = candidate.kv_gb[k] if problem.fleet.kv_links and candidate.kv_gb else None
            prefill.setdefault((candidate.variant, slot[1], bears, cache), []).append(slot)
        elif candidate.phase is Phase.DECODE:
            decode.setdefault((candidate.variant, slot[1], (), None), []).append(slot)
    partners: dict[Kind, Partners] = {}
    for kind in prefill:
        times = _added_times(problem, kind[1], tuple(receiving))
        borne = {time for time, bears in zip(times, kind[2], strict=True) if bears}
        own = {other: links_between(problem, kind[1], other[1]) for other in decode if other[0] == kind[0]}
        partners[kind] = {
            other: links
            for other, links in own.items()
            if links is not None and (not (time := added_ms(problem, links)) or time in borne)
        }
    return _grouped(problem, prefill, decode, partners)


def _added_times(problem: Problem, sender: int, receivers: Sequence[int]) -> tuple[float, ...]:
    """Return the distinct times added by the links from a pool to others. [ms]"""
    ways = (links_between(problem, sender, receiver) for receiver in receivers)
    return tuple(sorted({time for links in ways if links and (time := added_ms(problem, links))}))


def added_ms(problem: Problem, links: Sequence[int]) -> float:
    """Return the time that links add to a transfer. [ms]"""
    return sum(problem.fleet.kv_links[index].added_ms for index in links)


def links_between(problem: Problem, prefill: int, decode: int) -> tuple[int, ...] | None:
    """Return the links that a transfer between two pools uses; None if it is impossible."""
    sender, receiver = problem.pools[prefill], problem.pools[decode]
    policy = problem.fleet.policy
    if not policy.may_pair(sender.hardware, receiver.hardware):
        return None
    if policy.kv_transfer == "same-pool" and sender.name != receiver.name:
        return None
    links = tuple(
        index
        for index, link in enumerate(problem.fleet.kv_links)
        if link.joins((sender.name, sender.region), (receiver.name, receiver.region))
    )
    if sender.region != receiver.region and (policy.kv_transfer != "cross-region" or not links):
        return None
    return links


def _grouped(
    problem: Problem,
    prefill: Mapping[Kind, Sequence[Slot]],
    decode: Mapping[Kind, Sequence[Slot]],
    partners: Mapping[Kind, Partners],
) -> KvPairs:
    """Group kinds that have the same partners over the same links."""
    senders: dict[tuple[object, ...], list[Kind]] = {}
    for kind, own in partners.items():
        if own:
            cache = kind[3] if any(own.values()) else None
            senders.setdefault((cache, *sorted(own.items(), key=repr)), []).append(kind)
    groups = list(senders.values())
    receivers: dict[tuple[object, ...], list[Kind]] = {}
    for kind in decode:
        column = tuple(partners[group[0]].get(kind) for group in groups)
        if any(links is not None for links in column):
            receivers.setdefault(column, []).append(kind)
    others = list(receivers.values())
    labels = _labels(problem, groups), _labels(problem, others)
    pairs = []
    for i, group in enumerate(groups):
        for j, other in enumerate(others):
            links = partners[group[0]].get(other[0])
            if links is not None:
                cache = group[0][3] if links else None
                pairs.append(Pair(i, j, links, cache, f"{labels[0][i]}>{labels[1][j]}"))
    if len(pairs) == 1:
        pairs = [Pair(0, 0, pairs[0].links, pairs[0].kv_gb, "")]
    return KvPairs(
        tuple(SlotGroup(_slots(prefill, group), labels[0][i]) for i, group in enumerate(groups)),
        tuple(SlotGroup(_slots(decode, group), labels[1][j]) for j, group in enumerate(others)),
        tuple(pairs),
    )


def _slots(kinds: Mapping[Kind, Sequence[Slot]], group: Sequence[Kind]) -> tuple[Slot, ...]:
    return tuple(slot for kind in group for slot in kinds[kind])


def _labels(problem: Problem, groups: Sequence[Sequence[Kind]]) -> list[str]:
    """Return group names: their pools, with variants if any, numbered if ambiguous."""
    if len(groups) == 1:
        return [""]
    names = []
    for group in groups:
        places = dict.fromkeys(
            problem.pools[kind[1]].name if not kind[0] else f"{kind[0]}/{problem.pools[kind[1]].name}"
            for kind in group
        )
        names.append("+".join(places))
    return [
        name if names.count(name) == 1 else f"{name}#{names[: i + 1].count(name)}"
        for i, name in enumerate(names)
    ]
