"""Verify names and counts: references exist, counts are possible, and sums agree."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from fleetplan.fleet.figures import counted
from fleetplan.planner.plan import (
    AtMoment,
    KvFlow,
    MomentKey,
    OfflineWork,
    Placement,
    SurvivingPlacement,
    Unmet,
)
from fleetplan.planner.problem import Candidate, ConfigurationKey, Problem
from fleetplan.planner.verify.records import label_of
from fleetplan.planner.verify.rounding import differs, exceeds
from fleetplan.planner.verify.violations import Violation, above, misstated

Row = TypeVar("Row", bound=AtMoment)

RATE = "requests/s"


class Names:
    """Valid names for the rows of a plan.

    Parameters
    ----------
    problem : Problem
        Sets and data.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.candidates: dict[ConfigurationKey, Candidate] = {each.key: each for each in problem.candidates}
        self.pools = {pool.name: pool for pool in problem.pools}
        self.moments: set[MomentKey] = {problem.moment_key(moment) for moment in problem.moments}

    def at_fault(self, row: AtMoment, service: str, classes: Sequence[str]) -> list[str]:
        """Return errors for an unknown moment, service or class."""
        if row.moment_key not in self.moments:
            return [f"there is no moment {row.moment_key}"]
        if service not in self.problem.services:
            return [f"there is no service {service!r}"]
        known = {request_class.name for request_class in self.problem.services[service].classes}
        return [f"{service} has no class {name}" for name in classes if name not in known]


def sound_rows(
    family: str,
    rows: Sequence[Row],
    faults: Callable[[Row], list[str]],
    key: Callable[[Row], tuple[object, ...]],
) -> tuple[list[Row], list[Violation]]:
    """Return the distinct rows without a fault, and the violations of the others.

    Parameters
    ----------
    family : str
        Family of the violations.
    rows : Sequence[AtMoment]
        Rows of one kind.
    faults : callable
        Returns the faults that make a row invalid or impossible to check.
    key : callable
        Returns the key that identifies a row.
    """
    sound: list[Row] = []
    found = []
    seen: Counter[object] = Counter()
    for row in rows:
        wrong = faults(row)
        seen[key(row)] += 1
        if seen[key(row)] > 1:
            wrong = [*wrong, f"{label_of(key(row))}: the row appears twice"]
        found += [Violation(family, fault) for fault in wrong]
        if not wrong:
            sound.append(row)
    return sound, found


def placement_faults(names: Names, row: Placement) -> list[str]:
    """Return the faults of a placement that make it invalid or impossible to check."""
    label = f"{row.service} {row.phase} {row.config}"
    candidate = names.candidates.get(row.key)
    if candidate is None:
        return [f"{label}: the fleet has no such configuration"]
    if row.pool not in names.pools:
        return [f"{label}: there is no pool {row.pool!r}"]
    if missing := names.at_fault(row, row.service, tuple(row.requests_per_s_by_class)):
        return [f"{label}: {fault}" for fault in missing]
    faults = []
    if row.replicas < 1:
        faults.append(f"{label}: the number of replicas is {row.replicas}, below 1")
    if row.accelerators != row.replicas * candidate.accelerators:
        size = candidate.accelerators
        faults.append(
            f"{label}: {counted(row.replicas, 'replica')} of {counted(size, 'accelerator')} each "
            f"do not add up to {counted(row.accelerators, 'accelerator')}"
        )
    rates = row.requests_per_s_by_class.values()
    if not all(rate >= 0 for rate in rates) or differs(row.requests_per_s, sum(rates)):
        faults.append(
            f"{label}: {row.requests_per_s} requests/s are not the sum of {row.requests_per_s_by_class}"
        )
    return faults + _origin_faults(names.problem, row, label)


def placement_key(row: Placement) -> tuple[object, ...]:
    """Return the key of a placement."""
    return (*row.moment_key, row.pool, row.service, row.phase, row.hardware, row.config)


def _origin_faults(problem: Problem, row: Placement, label: str) -> list[str]:
    """Return the faults of traffic from other regions."""
    total: dict[str, float] = defaultdict(float)
    for origin, by_class in row.requests_per_s_by_origin.items():
        if origin == row.region or origin not in problem.regions:
            return [f"{label}: {origin!r} is no other region of the fleet"]
        for name, rate in by_class.items():
            total[name] += rate
            if not rate >= 0 or name not in row.requests_per_s_by_class:
                return [f"{label}: it cannot serve {rate} requests/s of {name} from {origin}"]
    return [
        above(f"{label}: traffic of {name} from other regions", rate, row.requests_per_s_by_class[name], RATE)
        for name, rate in total.items()
        if exceeds(rate, row.requests_per_s_by_class[name])
    ]


def unmet_faults(names: Names, row: Unmet) -> list[str]:
    """Return the faults of an unmet-demand row."""
    label = f"unmet {row.service} {row.request_class} {row.region}"
    faults = names.at_fault(row, row.service, (row.request_class,))
    if row.region not in names.problem.regions:
        faults.append(f"there is no region {row.region!r}")
    if not row.requests_per_s > 0:
        faults.append(f"the unmet rate is {row.requests_per_s} requests/s")
    return [f"{label}: {fault}" for fault in faults]


def unmet_key(row: Unmet) -> tuple[object, ...]:
    """Return the key of an unmet-demand row."""
    return (*row.moment_key, row.region, row.service, row.request_class)


def flow_faults(names: Names, row: KvFlow) -> list[str]:
    """Return the faults of a KV flow that make it impossible to check."""
    label = f"{row.service} {row.request_class} from {row.prefill_pool} to {row.decode_pool}"
    faults = names.at_fault(row, row.service, (row.request_class,))
    if not {row.prefill_pool, row.decode_pool} <= names.pools.keys():
        faults.append("the fleet has no such pools")
    else:
        ends = (
            ("prefill", row.prefill_pool, row.prefill_config),
            ("decode", row.decode_pool, row.decode_config),
        )
        for phase, pool, config in ends:
            hardware = names.pools[pool].hardware
            if (row.service, phase, hardware, config) not in names.candidates:
                faults.append(f"the fleet has no such configuration: {config} in {pool}")
    if row.origin not in names.problem.regions or not row.requests_per_s > 0:
        faults.append(f"the flow is {row.requests_per_s} requests/s of {row.origin!r}")
    return [f"{label}: {fault}" for fault in faults]


def flow_key(row: KvFlow) -> tuple[object, ...]:
    """Return the key of a KV flow."""
    ends = (row.prefill_pool, row.prefill_config, row.decode_pool, row.decode_config)
    return (*row.moment_key, row.service, row.request_class, row.origin, *ends)


def work_faults(names: Names, row: OfflineWork) -> list[str]:
    """Return the faults of an offline-work row."""
    label = f"{row.service} {row.request_class} {row.region}"
    faults = names.at_fault(row, row.service, (row.request_class,))
    faults += names.at_fault(row.model_copy(update={"slice": row.arises_in}), row.service, ())
    offline = row.service in names.problem.services and names.problem.services[row.service].offline
    if not offline or row.region not in names.problem.regions or not row.requests_per_day > 0:
        faults.append(f"no offline work of {row.requests_per_day} requests/day is possible in {row.region!r}")
    return [f"{label}: {fault}" for fault in faults]


def work_key(row: OfflineWork) -> tuple[object, ...]:
    """Return the key of an offline-work row."""
    return (*row.moment_key, row.arises_in, row.region, row.service, row.request_class)


def surviving_faults(names: Names, row: SurvivingPlacement) -> list[str]:
    """Return the faults of a placement after the loss of a region."""
    label = f"{row.lost_region} lost: {row.service} {row.config} in {row.pool}"
    faults = names.at_fault(row, row.service, tuple(row.requests_per_s_by_class))
    key = (row.service, row.phase, row.hardware, row.config)
    if key not in names.candidates or row.pool not in names.pools:
        faults.append("the fleet has no such configuration or pool")
    if row.lost_region not in names.problem.regions:
        faults.append("the fleet has no such region")
    if row.service not in names.problem.fleet.policy.survive_region_loss:
        faults.append("survive_region_loss does not name the service")
    if row.replicas < 1 or not all(rate > 0 for rate in row.requests_per_s_by_class.values()):
        faults.append(
            f"{counted(row.replicas, 'replica')} cannot serve {row.requests_per_s_by_class} requests/s"
        )
    return [f"{label}: {fault}" for fault in faults]


def surviving_key(row: SurvivingPlacement) -> tuple[object, ...]:
    """Return the key of a placement after the loss of a region."""
    return (row.lost_region, *row.moment_key, row.pool, row.service, row.phase, row.hardware, row.config)


def names_of_plan(problem: Problem, fleet: str, periods: Sequence[str]) -> Iterator[Violation]:
    """Check that the plan belongs to this fleet and horizon."""
    if fleet != problem.fleet.name:
        yield Violation("names", misstated("name of the fleet", repr(fleet), repr(problem.fleet.name)))
    if tuple(periods) != problem.periods:
        yield Violation("names", misstated("periods", ", ".join(periods), ", ".join(problem.periods)))
