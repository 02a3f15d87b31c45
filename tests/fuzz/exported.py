"""Check exports against their plan: nothing is missing, added, or of another size."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from fleetplan.fleet.catalog.hardware_names import devices_of
from fleetplan.fleet.document.plain import read_yaml
from fleetplan.fleet.errors import InputError
from fleetplan.planner.export.launch.deployments import NotLaunched, dns_name
from fleetplan.planner.export.launch.files import FORMATS, Exported, ExportOptions
from fleetplan.planner.export.launch.pools import NotProvided
from fleetplan.planner.plan import Placement, Plan, currency_of, titled
from tests.interop.cases import commands_of
from tests.interop.documents import read_all_yaml
from tests.interop.objects import chart_refusals, refusals
from tests.interop.reading import cases_of, degree, framework_of, largest_rows

REGION_OF_CLOUD, ZONE_OF_CLOUD = "us-east4", "us-east4-b"
"""Where Google Cloud has the regions of random fleets, one after the other."""

OBJECTS: Final = ("dynamo", "lws", "kueue", "karpenter", "gke")
"""Formats whose files hold objects with schemas of their own."""

RELATIVE_TOLERANCE: Final = 1e-9
"""Of amounts that are converted to a currency."""


class ReplicaSet(NamedTuple):
    """Equal replicas: where they run, in which phase, how many, and the accelerators of each."""

    pool: str
    phase: str
    replicas: int
    accelerators: int


def export_faults(plan: Plan, models: Path) -> Iterator[str]:
    """Yield what the exports of each period hold otherwise than the plan.

    Parameters
    ----------
    plan : Plan
        Any plan with its inputs.
    models : Path
        The folder of its fleet file, for models that are files.
    """
    for number, period in enumerate(plan.periods):
        written = {}
        regions = sorted({row.region for row in plan.pools})
        places = (REGION_OF_CLOUD, ZONE_OF_CLOUD)
        located = {region: places[(place + number) % 2] for place, region in enumerate(regions)}
        for form in FORMATS:
            asked = ExportOptions(period if FORMATS[form].by_period else None, locations=located)
            try:
                written[form] = FORMATS[form].write(plan, asked)
            except InputError as error:
                yield f"{form} of {period}: {error}"
        for form, exported in written.items():
            yield from (f"{form} of {period}: {why}" for why in _faults(plan, period, form, exported))
        with tempfile.TemporaryDirectory(prefix="exports-") as scratch:
            yield from _judged(plan, period, Path(scratch), models, written)


def _faults(plan: Plan, period: str, form: str, exported: Exported) -> Iterator[str]:
    texts = {name: content.decode() for name, content in exported.files.items() if form != "workbook"}
    if form in SETS:
        held = Counter(SETS[form](texts, plan))
        held.update(
            set_of(row)
            for each in exported.refused
            if isinstance(each, NotLaunched)
            for row in [each.placement]
        )
        yield from _differences("replicas", Counter(map(set_of, largest_rows(plan, period).values())), held)
    if form in POOLS:
        held_by = POOLS[form](texts)
        on_tpus = {
            use.pool for use in plan.pools if form == "gke" and _vendor(plan, use.hardware) == "Google"
        }
        left_out = {each.label for each in exported.refused if isinstance(each, NotProvided)}
        beyond = any("more than the pool has" in text for text in texts.values())
        for pool, most in standing(plan, period).items():
            held_here = held_by.get(dns_name(pool))
            # A whole region may be left out.
            if pool in on_tpus or left_out & {pool, *(use.region for use in plan.pools if use.pool == pool)}:
                continue
            if held_here is None or held_here < most:
                yield f"{pool}: {held_here or 0} of {most} accelerators"
            elif form == "kueue" and held_here > most and not beyond:
                yield f"{pool}: {held_here} of {most} accelerators, and no note says so"
        strange = held_by.keys() - {dns_name(pool) for pool in standing(plan, period)}
        yield from (f"{label} is no pool" for label in sorted(strange))
    if form == "purchases":
        yield from _purchase_faults(plan, texts)
    if form == "node-pools":
        yield from _node_faults(plan, period, texts["node-pools.csv"])


def _vendor(plan: Plan, hardware: str) -> str | None:
    assert plan.inputs is not None
    return next((each.vendor for each in plan.inputs.hardware if each.name == hardware), None)


def _differences(what: str, planned: Counter[Any], held: Counter[Any]) -> Iterator[str]:
    if planned != held:
        lost, strange = planned - held, held - planned
        yield f"{what}: lost {dict(lost)}, not planned {dict(strange)}"


def set_of(row: Placement) -> ReplicaSet:
    """The replicas of a row."""
    return ReplicaSet(dns_name(row.pool), row.phase, row.replicas, row.accelerators // row.replicas)


def _of_launch(texts: Mapping[str, str], plan: Plan) -> Iterator[ReplicaSet]:
    """The replicas that a script starts; of several hosts the command of the first one counts."""
    if "launch.sh" not in texts:
        return
    assert plan.inputs is not None
    devices = {each.name: devices_of(each.part or each.name) for each in plan.inputs.hardware}
    script = texts["launch.sh"]
    counts = {
        json.loads(line.split(" x ", 1)[1]): int(line[2:].split(" x ")[0])
        for line in script.splitlines()
        if line[:2] == "# " and line[2:].split(" x ")[0].isdigit()
    }
    commands: dict[str, list[str]] = {}
    for label, words in commands_of(script):
        commands.setdefault(label, words)
    for label, replicas in counts.items():
        _, phase, rest = label.split(" ", 2)
        placed, pool = rest.rsplit(" in ", 1)
        seen = _devices_of(commands[label], texts)
        accelerators, odd = divmod(seen, devices[placed.rsplit(" on ", 1)[1]])
        yield ReplicaSet(dns_name(pool), phase, replicas, accelerators if not odd else -seen)


def _devices_of(words: Sequence[str], texts: Mapping[str, str]) -> int:
    """The devices that a command asks for."""
    framework, rest = framework_of(words)
    if framework == "vllm":
        named = ("--tensor-parallel-size", "--pipeline-parallel-size", "--data-parallel-size")
        return _product(degree(rest, name) for name in (*named, "--prefill-context-parallel-size"))
    if framework == "sglang":
        # Its tensor parallelism counts all ranks of a stage.
        return _product(degree(rest, name) for name in ("--tp-size", "--pp-size"))
    options = ("--tp_size", "--pp_size", "--cp_size")
    engine = read_yaml(texts[rest[list(rest).index("--config") + 1]])
    names = ("tensor_parallel_size", "pipeline_parallel_size", "context_parallel_size")
    return _product(
        degree(rest, option) * int(engine.get(name, 1)) for option, name in zip(options, names, strict=True)
    )


def _product(factors: Iterator[int]) -> int:
    found = 1
    for each in factors:
        found *= each
    return found


def _of_dynamo(texts: Mapping[str, str], _: Plan) -> Iterator[ReplicaSet]:
    for text in texts.values():
        for component in read_yaml(text)["spec"]["components"]:
            spec = component["podTemplate"]["spec"]
            if "nodeSelector" not in spec:
                continue
            phase = {"worker": "aggregated"}.get(component["type"], component["type"])
            hosts = component.get("multinode", {}).get("nodeCount", 1)
            accelerators = _accelerators(spec["containers"][0])
            yield ReplicaSet(_pool_of(spec), phase, component["replicas"], hosts * accelerators)


def _of_charts(texts: Mapping[str, str], _: Plan) -> Iterator[ReplicaSet]:
    for text in texts.values():
        values = read_yaml(text)
        role = "prefill" if values["prefill"]["create"] else "decode"
        part = values[role]
        phase = role if role == "prefill" or values["routing"]["proxy"]["enabled"] else "aggregated"
        degrees = part["parallelism"]
        pod = degrees["dataLocal"] * degrees["tensor"]
        yield ReplicaSet(_pool_of(part), phase, part["replicas"], pod * degrees["workers"])


def _of_sets(texts: Mapping[str, str], _: Plan) -> Iterator[ReplicaSet]:
    for text in texts.values():
        for each in read_all_yaml(text):
            spec = each["spec"]
            template = spec["leaderWorkerTemplate"]
            worker = template["workerTemplate"]
            phase = worker["metadata"]["labels"]["fleetplan/phase"]
            accelerators = template["size"] * _accelerators(worker["spec"]["containers"][0])
            yield ReplicaSet(_pool_of(worker["spec"]), phase, spec["replicas"], accelerators)


def _accelerators(container: Mapping[str, Any]) -> int:
    (found,) = (int(each) for each in container["resources"]["limits"].values())
    return found


def _pool_of(spec: Mapping[str, Any]) -> str:
    return str(spec["nodeSelector"]["fleetplan/pool"])


SETS: Final[Mapping[str, Callable[[Mapping[str, str], Plan], Iterator[ReplicaSet]]]] = {
    "launch": _of_launch,
    "dynamo": _of_dynamo,
    "llm-d": _of_charts,
    "lws": _of_sets,
}
"""Formats that start replicas, and what reads them."""


def standing(plan: Plan, period: str) -> dict[str, int]:
    """Return the accelerators in use by pool and period, in the largest moment."""
    found: dict[str, int] = {}
    for use in plan.pools:
        if use.period == period and use.accelerators:
            found[use.pool] = max(found.get(use.pool, 0), use.accelerators)
    return found


def _quotas(texts: Mapping[str, str]) -> dict[str, int]:
    """Accelerators by flavor that queues have a quota of, all together."""
    found: Counter[str] = Counter()
    for text in texts.values():
        for each in read_all_yaml(text):
            if each["kind"] == "ClusterQueue":
                for group in each["spec"]["resourceGroups"]:
                    for flavor in group["flavors"]:
                        found[flavor["name"]] += sum(one["nominalQuota"] for one in flavor["resources"])
    return dict(found)


def _limits(texts: Mapping[str, str]) -> dict[str, int]:
    """Accelerators by pool that Karpenter may start."""
    return {
        each["metadata"]["name"]: sum(int(most) for most in each["spec"]["limits"].values())
        for text in texts.values()
        for each in read_all_yaml(text)
    }


def _node_counts(texts: Mapping[str, str]) -> dict[str, int]:
    """Accelerators by pool on nodes of Google Cloud; a TPU is no accelerator of a node there."""
    found = {}
    for text in texts.values():
        for each in read_all_yaml(text):
            spec = each["spec"]
            for card in spec["nodeConfig"].get("guestAccelerator", ()):
                nodes = spec["nodeCount"] if "nodeCount" in spec else spec["autoscaling"]["totalMinNodeCount"]
                found[each["metadata"]["name"]] = nodes * card["count"]
    return found


POOLS: Final[Mapping[str, Callable[[Mapping[str, str]], dict[str, int]]]] = {
    "kueue": _quotas,
    "karpenter": _limits,
    "gke": _node_counts,
}
"""Formats that count the accelerators of pools, and what reads them."""


def _purchase_faults(plan: Plan, texts: Mapping[str, str]) -> Iterator[str]:
    document = json.loads(texts["purchases.json"])
    currency = currency_of(plan)
    per_unit = 1.0 if currency is None else currency.usd_per_unit
    amount = "usd" if currency is None else titled("usd", currency.code)
    bought, gone = Counter[Any](), Counter[Any]()
    for change in document["resource_changes"]:
        after, before = change["change"]["after"], change["change"]["before"]
        if after is not None:
            bought[after["offer"], after["pool"], after["period"], after["accelerators"]] += 1
        else:
            gone[before["pool"], before["period"], before["hosts"]] += 1
    rows = [row for row in plan.purchases if not row.assumed]
    planned = Counter((row.offer, row.pool, row.period, row.accelerators) for row in rows)
    yield from _differences("orders", planned, bought)
    leaving = [row for row in plan.retirements if not row.assumed]
    yield from _differences("retired", Counter((row.pool, row.period, row.hosts) for row in leaving), gone)
    afters = [each["change"]["after"] for each in document["resource_changes"] if each["change"]["after"]]
    if afters != [each["values"] for each in document["planned_values"]["root_module"]["resources"]]:
        yield "planned_values are others than the changes"
    held = sum(each[amount] for each in afters)
    cost = sum(row.usd for row in rows) / per_unit
    if abs(held - cost) > RELATIVE_TOLERANCE * max(abs(cost), 1.0):
        yield f"orders of {held}, {cost} planned"
    addresses = Counter(each["address"] for each in document["resource_changes"])
    yield from (f"{times} resources of the address {each}" for each, times in addresses.items() if times > 1)


def _node_faults(plan: Plan, period: str, text: str) -> Iterator[str]:
    rows = list(csv.DictReader(io.StringIO(text)))
    held: Counter[str] = Counter()
    for row in rows:
        held["accelerators"] += int(row["accelerators"])
        held["used"] += int(row["accelerators_used"])
        if int(row["nodes"]) * int(row["accelerators_per_node"]) < int(row["accelerators"]):
            yield f"{row['pool']}: {row['nodes']} nodes hold no {row['accelerators']} accelerators"
        if int(row["nodes_needed"]) > int(row["nodes"]):
            yield f"{row['pool']}: {row['nodes_needed']} nodes needed of {row['nodes']}"
    uses = [use for use in plan.pools if use.period == period]
    planned = Counter(
        {
            "accelerators": sum(use.accelerators for use in uses),
            "used": sum(use.used_accelerators for use in uses),
        }
    )
    yield from _differences("nodes", planned, held)


def _judged(
    plan: Plan, period: str, into: Path, models: Path, written: Mapping[str, Exported]
) -> Iterator[str]:
    """Yield the findings of schemas and rules about exported files."""
    texts: dict[str, dict[str, str]] = defaultdict(dict)
    for form, exported in written.items():
        if form == "workbook":
            continue
        for name, content in exported.files.items():
            target = into / form / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            texts[form][name] = content.decode()
    for form in OBJECTS:
        yield from (f"{form} of {period}: {place}: {why}" for place, why in refusals(texts[form]))
    yield from (f"llm-d of {period}: {place}: {why}" for place, why in chart_refusals(texts["llm-d"]))
    try:
        for _, found in cases_of(plan, period, into, models=models, period=period):
            yield from (f"{place}: {why}" for place, _, why in found)
    except LookupError as error:
        yield f"of {period}: {error}"
