"""Plans for cloud clusters, and the objects exported from them."""

from __future__ import annotations

from typing import Any

from tests.interop.documents import read_all_yaml
from tests.interop.objects import refusals
from tests.planner.export.launched_plans import plan
from tests.planner.whole_fleet import EVIL

from fleetplan.planner.export.launch.deployments import dns_name
from fleetplan.planner.export.launch.kueue import kueue_quotas
from fleetplan.planner.export.launch.pools import standing_pools
from fleetplan.planner.plan import Plan
from fleetplan.planner.plan.inputs import HardwareInput

LOCATIONS = {"here": "us-east4", "there": "europe-west4-b"}

HOSTILE = ("a\nkind: Pod", "x" * 90, "9-lives", "..", "ünïcode/Ü", "- &a *a", "# no comment", "{}", "€")
"""Names of pools, services and regions that YAML, DNS or a comment would take amiss."""


def of_catalogue(whole: Plan, name: str = "H100-SXM", vendor: str = "NVIDIA") -> Plan:
    """A plan on hosts of eight parts that clouds have."""
    assert whole.inputs is not None
    kind = HardwareInput(name=name, accelerators_per_host=8, vendor=vendor)
    pools = tuple(use.model_copy(update={"hardware": name}) for use in whole.pools)
    inputs = whole.inputs.model_copy(update={"hardware": (*whole.inputs.hardware, kind)})
    return whole.model_copy(update={"pools": pools, "inputs": inputs})


def renamed(whole: Plan, pools: dict[str, str], service: str = "", region: str = "") -> Plan:
    """A plan with other names of its pools, and of one service and region."""

    def row(each: Any) -> Any:
        update = {"pool": pools.get(each.pool, each.pool)}
        if region and hasattr(each, "region") and each.region == "here":
            update["region"] = region
        if service and hasattr(each, "service") and each.service == EVIL:
            update["service"] = service
        return each.model_copy(update=update)

    assert whole.inputs is not None
    lines = tuple(row(line) for line in whole.inputs.cost_lines)
    return whole.model_copy(
        update={
            "pools": tuple(map(row, whole.pools)),
            "placements": tuple(map(row, whole.placements)),
            "purchases": tuple(map(row, whole.purchases)),
            "inputs": whole.inputs.model_copy(update={"cost_lines": lines}),
        }
    )


def objects(texts: dict[str, str]) -> list[dict[str, Any]]:
    return [each for text in texts.values() for each in read_all_yaml(text)]


def on_tpus(name: str, chips: int) -> tuple[Plan, str]:
    """Return a plan on TPUs and its rented pool, with replicas of this number of chips."""
    whole = of_catalogue(plan(), name, "Google")
    rented = next(each for each in standing_pools(whole, "2027Q2") if not each.owned)
    rows = tuple(
        row.model_copy(update={"accelerators": chips * row.replicas}) if row.pool == rented.name else row
        for row in whole.placements
    )
    most = max(row.accelerators for row in rows if (row.period, row.pool) == ("2027Q2", rented.name))
    uses = tuple(
        use.model_copy(update={"accelerators": most + 8}) if use.pool == rented.name else use
        for use in whole.pools
    )
    return whole.model_copy(update={"placements": rows, "pools": uses}), rented.name


def labels_of(whole: Plan, pool: str) -> dict[str, str]:
    texts, _ = kueue_quotas(whole, "2027Q2")
    assert [*refusals(texts)] == []
    flavors = {each["metadata"]["name"]: each["spec"] for each in objects(texts)}
    found: dict[str, str] = flavors[dns_name(pool)]["nodeLabels"]
    return found
