"""Kueue quotas: accelerators of each service in each pool, and a shared quota to borrow from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from fleetplan.fleet.figures import counted
from fleetplan.planner.export.launch.deployments import dns_name, dns_names
from fleetplan.planner.export.launch.nodes import POOL_LABEL, documents
from fleetplan.planner.export.launch.pools import NotProvided, StandingPool, standing_pools
from fleetplan.planner.export.launch.tools import tools
from fleetplan.planner.export.launch.tpu_slices import node_labels, pool_slices
from fleetplan.planner.plan import Plan

QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
"""Label of a workload that names its LocalQueue."""

SPARE: Final = "spare"
"""Queue with the accelerators outside service quotas, from which services can borrow."""

Quotas = Mapping[str, int]
"""Accelerators by pool."""


def kueue_quotas(plan: Plan, period: str | None) -> tuple[dict[str, str], tuple[NotProvided, ...]]:
    """Return the flavors and queues of each region, by file name, and pools without quotas.

    A service's quota is the accelerators of its busiest moment. The rest of a pool, including its reserve, is
    the quota of a separate queue from which the services of the region can borrow.
    """
    period = period or plan.periods[0]
    found: dict[str, list[StandingPool]] = defaultdict(list)
    left_out = []
    for pool in standing_pools(plan, period):
        if pool.resource:
            found[pool.region].append(pool)
        else:
            left_out.append(NotProvided(pool.name, _no_resource(pool)))
    most = tools().kueue.flavors
    texts = {}
    queues = {region: _service_quotas(plan, period, region) for region in found}
    called: dict[tuple[str | None, str], str] = {(None, region): f"{SPARE}-{region}" for region in found}
    for region, quotas in queues.items():
        called |= {(service, region): f"{service}-{region}" for service in quotas}
    names = dns_names(called)
    for region, pools in found.items():
        if len(pools) > most:
            reason = (
                f"a ClusterQueue of Kueue has at most {counted(most, 'flavor')}, and the region has "
                f"{counted(len(pools), 'pool')}"
            )
            left_out.append(NotProvided(region, reason))
        else:
            texts[f"{dns_name(region)}.kueue.yaml"] = _text(
                plan, period, region, pools, queues[region], names
            )
    return texts, tuple(left_out)


def _no_resource(pool: StandingPool) -> str:
    return f"no resource of a device plug-in is known for {pool.vendor or 'its vendor'} ({pool.hardware})"


def _text(
    plan: Plan,
    period: str,
    region: str,
    pools: Sequence[StandingPool],
    queues: Mapping[str, Quotas],
    names: Mapping[tuple[str | None, str], str],
) -> str:
    """Return the objects of a region; `names` are those of the queues of services and of the rest (None)."""
    rules = tools().kueue
    taken = {pool.name: sum(quotas.get(pool.name, 0) for quotas in queues.values()) for pool in pools}
    spare = {pool.name: max(0, pool.accelerators - taken[pool.name]) for pool in pools}
    objects: list[dict[str, object]] = [
        {
            "apiVersion": rules.api,
            "kind": "ResourceFlavor",
            "metadata": {"name": pool.label},
            "spec": {"nodeLabels": _labels(plan, pool, period)},
        }
        for pool in pools
    ]
    notes = [
        f"{pool.label}: the quotas are "
        f"{counted(taken[pool.name] - pool.accelerators, 'accelerator')} more than the "
        f"pool has, as the services need most at different moments"
        for pool in pools
        if taken[pool.name] > pool.accelerators
    ]
    for service, quotas in queues.items():
        name = names[service, region]
        objects += [_cluster_queue(name, region, pools, quotas), _local_queue(name)]
        notes.append(f"pods of {service} join with the label {QUEUE_LABEL}: {name}")
    if any(spare.values()):
        objects.append(_cluster_queue(names[None, region], region, pools, spare))
    notes.append(
        "Kueue admits a pod if its queue covers all that it requests: cover or exclude cpu and memory"
    )
    return documents(f"Kueue {rules.version}: {region}, {period}", notes, objects)


def _labels(plan: Plan, pool: StandingPool, period: str) -> dict[str, str]:
    """Return the node labels of a pool, which Kueue adds to the selectors of admitted pods."""
    slices = pool_slices(plan, pool, period)
    return {POOL_LABEL: pool.label} | ({} if slices is None else node_labels(pool, slices))


def _service_quotas(plan: Plan, period: str, region: str) -> dict[str, Quotas]:
    """Return the accelerators of each service by pool, at their maximum over the moments of the period."""
    moments: dict[tuple[str, str], dict[tuple[str | None, str | None], int]] = defaultdict(
        lambda: defaultdict(int)
    )
    for row in plan.placements:
        if row.period == period and row.region == region:
            moments[row.service, row.pool][row.slice, row.scenario] += row.accelerators
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for (service, pool), by_moment in moments.items():
        found[service][pool] = max(by_moment.values())
    return dict(found)


def _cluster_queue(
    name: str, region: str, pools: Sequence[StandingPool], quotas: Quotas
) -> dict[str, object]:
    """Return a queue with one group of flavors per resource: all flavors of a group cover its resources."""
    groups: dict[str, list[dict[str, object]]] = defaultdict(list)
    for pool in pools:
        if quotas.get(pool.name):
            quota = {"name": pool.resource, "nominalQuota": quotas[pool.name]}
            groups[pool.resource].append({"name": pool.label, "resources": [quota]})
    return {
        "apiVersion": tools().kueue.api,
        "kind": "ClusterQueue",
        "metadata": {"name": name},
        "spec": {
            "cohortName": dns_name(region),
            "namespaceSelector": {},
            # A service reclaims its lent quota when it needs it.
            "preemption": {"reclaimWithinCohort": "Any"},
            "resourceGroups": [
                {"coveredResources": [resource], "flavors": flavors} for resource, flavors in groups.items()
            ],
        },
    }


def _local_queue(name: str) -> dict[str, object]:
    return {
        "apiVersion": tools().kueue.api,
        "kind": "LocalQueue",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"clusterQueue": name},
    }
