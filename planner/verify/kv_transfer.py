"""Verify family 4: KV transfers follow the allowed pairs and the capacities of links."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from fleetplan.fleet.inventory import KvLink
from fleetplan.planner.plan import KvFlow, MomentKey, Placement
from fleetplan.planner.problem import Candidate, Phase
from fleetplan.planner.verify.plan_check import PlanCheck
from fleetplan.planner.verify.quantities import links_between, links_of, planned
from fleetplan.planner.verify.records import same
from fleetplan.planner.verify.rounding import RELATIVE_TOLERANCE, differs, exceeds
from fleetplan.planner.verify.violations import Violation, above, misstated

Runs = tuple[Placement, Candidate]
Node = TypeVar("Node")


def check_kv_transfer(check: PlanCheck) -> Iterator[Violation]:
    """Check that prefill and decode of every class match, by the stated flows if transfers are restricted."""
    flows: dict[tuple[str, str, str, MomentKey], list[KvFlow]] = defaultdict(list)
    for flow in check.plan.kv_flows:
        flows[flow.service, flow.request_class, flow.origin, flow.moment_key].append(flow)
    for cell in check.problem.cells:
        rows = check.of_cell(cell.service, cell.region, cell.moment)
        when = check.key_of(check.problem.moments[cell.moment])
        for k, request_class in enumerate(check.problem.services[cell.service].classes):
            name = request_class.name
            by_phase = {
                phase: [row for row in rows if row[1].phase is phase and _rate(check, row, cell.region, name)]
                for phase in (Phase.PREFILL, Phase.DECODE)
            }
            stated = flows.pop((cell.service, name, cell.region, when), [])
            if _is_free(check, by_phase, k) and not stated:
                continue
            yield from _flows_hold(check, by_phase, k, cell.region, stated)
    for key in flows:
        label = " ".join([*key[:3], *filter(None, key[3])])
        yield Violation("kv_transfer", f"{label}: KV flows without demand")
    yield from _links_hold(check)
    for flow in check.plan.kv_flows:
        carried = _gb_per_s(check, flow) if links_of(check, flow) else None
        if not same(flow.kv_gb_per_s, carried):
            text = f"{flow.service} {flow.request_class} from {flow.prefill_pool} to {flow.decode_pool}"
            yield Violation("kv_transfer", misstated(text, flow.kv_gb_per_s, carried, "GB/s"))


def _rate(check: PlanCheck, row: Runs, origin: str, name: str) -> float:
    return check.rates(row[0], origin).get(name, 0.0)


def _is_free(check: PlanCheck, by_phase: Mapping[Phase, Sequence[Runs]], k: int) -> bool:
    """Return whether any prefill replica may pass to any decode replica without a link capacity."""
    return all(
        may_pass(check, sender, receiver, k, sender[0].region) and not _links(check, sender[0], receiver[0])
        for sender in by_phase[Phase.PREFILL]
        for receiver in by_phase[Phase.DECODE]
    )


def may_pass(check: PlanCheck, sender: Runs, receiver: Runs, k: int, origin: str) -> bool:
    """Return whether one placement may prefill requests of a region and another decode them."""
    policy = check.problem.fleet.policy
    (first, prefill), (second, decode) = sender, receiver
    if prefill.variant != decode.variant or not policy.may_pair(first.hardware, second.hardware):
        return False
    if policy.kv_transfer == "same-pool":
        return first.pool == second.pool
    links = _links(check, first, second)
    if first.region != second.region and (policy.kv_transfer != "cross-region" or not links):
        return False
    service, ttft_ms = check.problem.services[first.service], prefill.ttft_ms[k]
    added_ms = sum(link.added_ms for link in links)
    if not added_ms:
        return True
    way_ms = 0.0
    if origin != first.region:
        way_ms = check.problem.regions[origin].round_trip_ms.get(first.region, float("inf"))
    late = prefill.reach_ms is not None and exceeds(way_ms + added_ms, prefill.reach_ms)
    if ttft_ms is not None and service.ttft_ms is not None:
        total_ms = ttft_ms + service.outside_ms.total_ms + way_ms + added_ms
        late = late or exceeds(total_ms, service.ttft_ms)
    return not late


def _links(check: PlanCheck, sender: Placement, receiver: Placement) -> list[KvLink]:
    """Return the links between two placements."""
    return links_between(check, (sender.pool, sender.region), (receiver.pool, receiver.region))


def _flows_hold(
    check: PlanCheck,
    by_phase: Mapping[Phase, Sequence[Runs]],
    k: int,
    origin: str,
    flows: Sequence[KvFlow],
) -> Iterator[Violation]:
    """Check that flows use allowed pairs, and add up to the rate of each placement."""
    rows = [*by_phase[Phase.PREFILL], *by_phase[Phase.DECODE]]
    if not rows and not flows:
        return
    placed = {(row.phase, row.pool, row.config): (row, candidate) for row, candidate in rows}
    passed: dict[tuple[str, str, str], float] = defaultdict(float)
    for flow in flows:
        ends = (
            ("prefill", flow.prefill_pool, flow.prefill_config),
            (
                "decode",
                flow.decode_pool,
                flow.decode_config,
            ),
        )
        text = f"{flow.service} {flow.request_class} from {flow.prefill_pool} to {flow.decode_pool}"
        if ends[0] not in placed or ends[1] not in placed or flow.requests_per_s < 0:
            yield Violation("kv_transfer", f"{text}: the plan has no such placements")
            continue
        if not may_pass(check, placed[ends[0]], placed[ends[1]], k, origin):
            yield Violation("kv_transfer", f"{text}: no rule allows this KV transfer")
        for end in ends:
            passed[end] += flow.requests_per_s
    for key, row in placed.items():
        name = check.problem.services[row[0].service].classes[k].name
        if differs(passed[key], _rate(check, row, origin, name)):
            text = f"{row[0].service} {' '.join(key)}: KV flows carry {passed[key]} requests/s"
            rate = _rate(check, row, origin, name)
            yield Violation("kv_transfer", f"{text}; the placement serves {rate} requests/s")


def _links_hold(check: PlanCheck) -> Iterator[Violation]:
    """Check the load of each link, with the headroom of the services that use it."""
    carried: dict[tuple[KvLink, MomentKey], float] = defaultdict(float)
    for flow in check.plan.kv_flows:
        for link in links_of(check, flow):
            gb_per_s = planned(check, flow.service, _gb_per_s(check, flow) or 0.0)
            carried[link, flow.moment_key] += gb_per_s
    for (link, when), gb_per_s in carried.items():
        if exceeds(gb_per_s, link.gb_per_s):
            label = " ".join([link.name, *filter(None, when)])
            yield Violation("kv_transfer", above(f"{label}: the load", gb_per_s, link.gb_per_s, "GB/s"))


def _gb_per_s(check: PlanCheck, flow: KvFlow) -> float | None:
    """Return the link load of a flow from the cache of its prefill; None if unknown. [GB/s]"""
    hardware = check.pool(flow.prefill_pool).hardware.name
    sender = check.candidates[flow.service, "prefill", hardware, flow.prefill_config]
    cache = sender.kv_gb[check.class_index[flow.service][flow.request_class]] if sender.kv_gb else None
    return None if cache is None else flow.requests_per_s * cache


def most_passed(
    sent: Mapping[Node, float], received: Mapping[Node, float], may: Callable[[Node, Node], bool]
) -> float:
    """Return the most that can pass from senders to receivers: a maximum flow by shortest augmenting paths.

    Parameters
    ----------
    sent, received : Mapping[Node, float]
        Amount that each sender can send, and each receiver can receive.
    may : callable
        Returns whether a sender may pass anything to a receiver.
    """
    left, room = dict(sent), dict(received)
    flow: dict[tuple[Node, Node], float] = defaultdict(float)
    total, tiny = 0.0, RELATIVE_TOLERANCE * 1e-3 * max([*sent.values(), 1e-9])
    while True:
        before: dict[tuple[bool, Node], Node | None] = {(True, s): None for s in left if left[s] > tiny}
        queue = deque(before)
        end: Node | None = None
        while queue and end is None:
            is_sender, here = queue.popleft()
            others = received if is_sender else sent
            for other in others:
                usable = may(here, other) if is_sender else flow[other, here] > tiny
                if usable and (not is_sender, other) not in before:
                    before[not is_sender, other] = here
                    queue.append((not is_sender, other))
                    if is_sender and room[other] > tiny:
                        end = other
                        break
        if end is None:
            return total
        total += _augment(before, end, left, room, flow)


def _augment(
    before: Mapping[tuple[bool, Node], Node | None],
    end: Node,
    left: dict[Node, float],
    room: dict[Node, float],
    flow: dict[tuple[Node, Node], float],
) -> float:
    """Send as much as an augmenting path allows, and return the amount."""
    way: list[tuple[Node, Node, bool]] = []
    receiver = end
    while True:
        sender = before[False, receiver]
        assert sender is not None, "a receiver is reached from a sender"
        way.append((sender, receiver, True))
        earlier = before[True, sender]
        if earlier is None:
            break
        way.append((sender, earlier, False))
        receiver = earlier
    amount = min(left[sender], room[end], *(flow[s, r] for s, r, forward in way if not forward))
    for s, r, forward in way:
        flow[s, r] += amount if forward else -amount
    left[sender] -= amount
    room[end] -= amount
    return amount
