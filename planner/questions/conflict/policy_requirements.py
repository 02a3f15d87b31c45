"""Requirements from the policy: rules for all services and pools."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from fleetplan.fleet.figures import counted
from fleetplan.fleet.inventory import Fleet, Policy
from fleetplan.planner.questions import fleet_edits
from fleetplan.planner.questions.conflict.requirement import (
    Requirement,
    RequirementKind,
    Steps,
    eased_percent,
    more_of_share,
    steps_of_share,
)


def policy_requirements(fleet: Fleet) -> Iterator[Requirement]:
    """Yield the rules of the policy."""
    policy = fleet.policy
    reserve, configurations = policy.reserve_hosts_per_pool, policy.max_configs_per_service_region
    if reserve:
        yield _rule(
            f"{counted(reserve, 'host')} of each pool in reserve",
            lambda rules, n: replace(rules, reserve_hosts_per_pool=max(0, reserve - n)),
            lambda n: f"{counted(n, 'reserve host')} fewer in each pool",
            reserve,
        )
    percent = policy.reserve_percent_per_pool
    if percent:
        yield _rule(
            f"{percent:g} % of the hosts in use of each pool stay in reserve",
            lambda rules, n: replace(rules, reserve_percent_per_pool=eased_percent(percent, n)),
            lambda n: f"{n} % less reserve in each pool",
            math.ceil(percent),
        )
    if configurations is not None:
        most = 10 * configurations + 100
        yield _rule(
            f"at most {counted(configurations, 'configuration')} of a service in a region",
            lambda rules, n: replace(
                rules, max_configs_per_service_region=None if n >= most else configurations + n
            ),
            lambda n: (
                f"{counted(configurations + n, 'configuration')} of a service in a region, not "
                f"{configurations}"
            ),
            most,
        )
    share = policy.max_share_per_pool
    if share is not None:
        yield _rule(
            f"one pool serves at most {share:.0%} of a service",
            lambda rules, n: replace(rules, max_share_per_pool=more_of_share(share, n)),
            lambda n: f"one pool serves up to {more_of_share(share, n):.0%} of a service",
            steps_of_share(share),
        )
    yield from map(_survival, policy.survive_region_loss)
    yield from _kv_rules(fleet)


def _survival(service: str) -> Requirement:
    def without(rules: Policy) -> Policy:
        kept = tuple(each for each in rules.survive_region_loss if each != service)
        return replace(rules, survive_region_loss=kept)

    return Requirement(
        name=f"{service} survives the loss of a region",
        kind=RequirementKind.POLICY,
        drop=lambda base: fleet_edits.with_policy(base, without),
        places=frozenset(),
        steps=None,
    )


def _rule(
    name: str, change: Callable[[Policy, int], Policy], text: Callable[[int], str], most: int
) -> Requirement:
    def relax(base: Fleet, n: int) -> Fleet:
        return fleet_edits.with_policy(base, lambda rules: change(rules, n))

    return Requirement(
        name=name,
        kind=RequirementKind.POLICY,
        drop=lambda base: relax(base, most),
        places=frozenset(),
        steps=Steps(relax, text, most),
    )


def _kv_rules(fleet: Fleet) -> Iterator[Requirement]:
    """Yield the rules on KV transfer between hardware and on link capacities."""
    if fleet.policy.kv_pairs is not None:
        name = "KV caches pass only between compatible hardware"
        yield _kv_rule(name, lambda base: _rules(base, kv_pairs=None))
    if fleet.policy.kv_transfer == "same-pool":
        name = "KV caches stay in their pool"
        yield _kv_rule(name, lambda base: _rules(base, kv_transfer="same-region"))
    for index, link in enumerate(fleet.kv_links):
        name = f"the link from {link.prefill} to {link.decode} carries {link.gb_per_s:g} GB/s"
        yield _kv_rule(name, partial(_unlimited_link, index))


def _kv_rule(name: str, drop: Callable[[Fleet], Fleet]) -> Requirement:
    return Requirement(name=name, kind=RequirementKind.POLICY, drop=drop, places=frozenset(), steps=None)


def _rules(base: Fleet, **changes: object) -> Fleet:
    return fleet_edits.with_policy(base, lambda rules: replace(rules, **changes))  # type: ignore[arg-type]


def _unlimited_link(index: int, base: Fleet) -> Fleet:
    links = list(base.kv_links)
    links[index] = replace(links[index], gb_per_s=UNLIMITED_GB_PER_S)
    return replace(base, kv_links=tuple(links))


UNLIMITED_GB_PER_S: Final = 1e9
"""Exceeds the capacity of any link. [GB/s]"""
