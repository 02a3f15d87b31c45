"""KV-cache flows between prefill and decode replicas, if transfer is restricted."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from fleetplan.planner.assemble.traffic import ServedTraffic
from fleetplan.planner.plan import Binding, KvFlow, MomentKey
from fleetplan.planner.problem import Problem, Slot
from fleetplan.planner.problem.kv_pairs import KvPairs, Pair, SlotGroup, cell_pairs

ROUNDING_RATIO: Final = 1e-9
"""Share of a pair's traffic below which the rest is rounding instead of a flow."""


def kv_flows(problem: Problem, traffic: ServedTraffic) -> tuple[KvFlow, ...]:
    """Return the flows of cells and classes with link capacities or restricted pairs of replicas."""
    rows = []
    for (cell_index, k), known in cell_pairs(problem).items():
        if _is_free(traffic, (cell_index, k), known):
            continue
        for pair, sender, receiver, rate in _flows(traffic, (cell_index, k), known):
            rows.append(_row(problem, (cell_index, k), pair, sender, receiver, rate))
    return tuple(rows)


USED_UP_RATIO: Final = 1 - 1e-3
"""Utilisation from which a link counts as binding."""


def used_up_links(problem: Problem, flows: Sequence[KvFlow]) -> tuple[Binding, ...]:
    """Return the binding links, including the headroom of the services that use them."""
    pools = {pool.name: pool for pool in problem.pools}
    found = []
    for link in problem.fleet.kv_links:
        carried: dict[MomentKey, float] = defaultdict(float)
        for flow in flows:
            sender, receiver = pools[flow.prefill_pool], pools[flow.decode_pool]
            if link.joins((sender.name, sender.region), (receiver.name, receiver.region)):
                planned_ratio = problem.services[flow.service].planned_ratio
                carried[flow.moment_key] += (flow.kv_gb_per_s or 0.0) * planned_ratio
        for when, used in carried.items():
            if used >= USED_UP_RATIO * link.gb_per_s:
                name = " ".join(part for part in (link.name, *when) if part is not None)
                found.append(
                    Binding(family="kv_transfer", name=name, used=used, limit=link.gb_per_s, unit="GB/s")
                )
    return tuple(found)


def _is_free(traffic: ServedTraffic, place: tuple[int, int], known: KvPairs) -> bool:
    """Return whether any prefill group can pass to any decode group without a link capacity."""
    (cell, k), free = place, {(pair.prefill, pair.decode) for pair in known.pairs if not pair.links}

    def running(groups: Sequence[SlotGroup]) -> list[int]:
        return [g for g, group in enumerate(groups)
                if any(traffic.rates.get((c, k, p, cell), 0.0) > 0 for c, p in group.slots)]  # fmt: skip

    return free.issuperset(itertools.product(running(known.prefill), running(known.decode)))


def _flows(
    traffic: ServedTraffic, place: tuple[int, int], known: KvPairs
) -> Iterator[tuple[Pair, Slot, Slot, float]]:
    """Yield the traffic of each pair, assigned to its slots in order with as few flows as possible."""
    cell, k = place
    left: dict[Slot, float] = {
        (c, p): traffic.rates.get((c, k, p, cell), 0.0)
        for group in (*known.prefill, *known.decode)
        for c, p in group.slots
    }
    for g, pair in enumerate(known.pairs):
        rate = traffic.passed.get((cell, k, g), 0.0)
        rounding = ROUNDING_RATIO * rate
        senders, receivers = known.prefill[pair.prefill].slots, known.decode[pair.decode].slots
        for sender in senders:
            for receiver in receivers:
                flow = min(rate, left[sender], left[receiver])
                if flow > rounding:
                    rate -= flow
                    left[sender] -= flow
                    left[receiver] -= flow
                    yield pair, sender, receiver, flow


def _row(
    problem: Problem, place: tuple[int, int], pair: Pair, sender: Slot, receiver: Slot, rate: float
) -> KvFlow:
    cell = problem.cells[place[0]]
    return KvFlow(
        **problem.row_moment(cell.moment),
        service=cell.service,
        request_class=problem.services[cell.service].classes[place[1]].name,
        origin=cell.region,
        prefill_pool=problem.pools[sender[1]].name,
        prefill_config=problem.candidates[sender[0]].config,
        decode_pool=problem.pools[receiver[1]].name,
        decode_config=problem.candidates[receiver[0]].config,
        requests_per_s=rate,
        kv_gb_per_s=None if pair.kv_gb is None or not pair.links else rate * pair.kv_gb,
    )
