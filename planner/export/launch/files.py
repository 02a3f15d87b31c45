"""The formats of `plan export` and their files by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from fleetplan.planner.export.launch.cloud_nodes import gke_pools, karpenter_pools
from fleetplan.planner.export.launch.commands import FRAMEWORKS, launch
from fleetplan.planner.export.launch.deployments import (
    LaunchedGroup,
    NotLaunched,
    deployments,
    left_out,
)
from fleetplan.planner.export.launch.dynamo import dynamo_graphs
from fleetplan.planner.export.launch.kueue import kueue_quotas
from fleetplan.planner.export.launch.leader_worker_sets import leader_worker_sets
from fleetplan.planner.export.launch.llm_d import llm_d_values
from fleetplan.planner.export.launch.pools import NotProvided
from fleetplan.planner.export.launch.replica import ROUTED, Launch
from fleetplan.planner.export.launch.supply import node_pools
from fleetplan.planner.export.launch.terraform import purchase_changes
from fleetplan.planner.export.launch.tools import tools
from fleetplan.planner.export.workbook import WORKBOOK_FILE, workbook
from fleetplan.planner.plan import Plan


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """Options of an export; each format uses some of them.

    Attributes
    ----------
    period : str or None
        Period of the plan; None for the first (for node pools, all).
    framework : str or None
        vllm, sglang or trtllm; None for that of each service.
    locations : Mapping[str, str]
        Cloud location by region of the plan.
    """

    period: str | None = None
    framework: str | None = None
    locations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Exported:
    """Files by name, and omitted placements and pools."""

    files: Mapping[str, bytes]
    refused: tuple[NotLaunched | NotProvided, ...] = ()


def export_launch(plan: Plan, asked: ExportOptions) -> Exported:
    """Return a shell script with one command per set of replicas, and the files that the commands name."""
    found, unread = deployments(plan, asked.period)
    refused = list(unread)
    files: dict[str, bytes] = {}
    commands: list[tuple[LaunchedGroup, Launch]] = []
    for each in found:
        started = launch(each, asked.framework or each.service.framework)
        if isinstance(started, NotLaunched):
            refused.append(started)
            continue
        commands.append((each, started))
        if started.config:
            files[f"{each.name}.yaml"] = started.config_text.encode()
    if not commands:
        return Exported({}, tuple(refused))
    title = json.dumps(f"{plan.fleet}, {asked.period or plan.periods[0]}")
    lines = [f"# {title}: one command starts one replica.", *_head(commands)]
    lines += [f"# {left_out(each)}" for each in refused]
    lines += [_block(each, started) for each, started in commands]
    return Exported({"launch.sh": ("\n".join(lines) + "\n").encode(), **files}, tuple(refused))


def _head(commands: Sequence[tuple[LaunchedGroup, Launch]]) -> list[str]:
    """Return the framework versions of a script, and a note on replicas that share a host."""
    lines = []
    used = {started.framework for _, started in commands}
    for name in (each for each in FRAMEWORKS if each in used):
        rules = tools().framework(name)
        lines.append(f"# Options of {name} {rules.version}, read in: {rules.source}.")
    sharing = [
        (each, started)
        for each, started in commands
        if each.accelerators_on_a_host < each.hardware.accelerators_per_host
    ]
    if sharing:
        ports = {started.own_port for each, started in sharing if each.placement.phase != "aggregated"}
        own = ["CUDA_VISIBLE_DEVICES (AMD: HIP_VISIBLE_DEVICES)", "--port", *sorted(filter(None, ports))]
        lines.append(
            f"# Replicas that share a host need accelerators and ports of their own: {', '.join(own)}."
        )
    return lines


def _block(each: LaunchedGroup, started: Launch) -> str:
    """Return one command with a comment; JSON escapes names, so that they cannot end the comment."""
    lines = ["", f"# {each.placement.replicas} x {json.dumps(each.label)}"]
    lines += [f"# {note}" for note in (*started.notes, *started.by_hand)]
    if each.placement.phase != "aggregated" and not started.by_hand:
        lines.append(f"# {ROUTED}")
    if started.own_address is not None:
        lines.append(f"# {started.own_address} must be the address for the other phase to reach this host")
    return "\n".join([*lines, started.text])


_Launched = Callable[[Sequence[LaunchedGroup]], tuple[dict[str, str], tuple[NotLaunched, ...]]]
_Provided = Callable[[Plan, ExportOptions], tuple[dict[str, str], tuple[NotProvided, ...]]]


def _manifests(write: _Launched) -> Callable[[Plan, ExportOptions], Exported]:
    """Return a format that writes the placements of a period, each service with its own framework."""

    def export(plan: Plan, asked: ExportOptions) -> Exported:
        found, unread = deployments(plan, asked.period)
        texts, refused = write(found)
        return Exported({name: text.encode() for name, text in texts.items()}, (*unread, *refused))

    return export


def _provided(write: _Provided) -> Callable[[Plan, ExportOptions], Exported]:
    """Return a format that writes the pools of a period."""

    def export(plan: Plan, asked: ExportOptions) -> Exported:
        texts, left_out = write(plan, asked)
        return Exported({name: text.encode() for name, text in texts.items()}, left_out)

    return export


def export_node_pools(plan: Plan, asked: ExportOptions) -> Exported:
    """Return the nodes of all periods, or of one."""
    table = node_pools(plan)
    rows = table if asked.period is None else table[table["period"] == asked.period]
    return Exported({"node-pools.csv": rows.to_csv(index=False).encode()})


@dataclass(frozen=True, slots=True)
class Format:
    """A format of `plan export`: its writer and its options."""

    write: Callable[[Plan, ExportOptions], Exported]
    by_period: bool = False
    by_framework: bool = False
    by_location: bool = False


FORMATS: Final[Mapping[str, Format]] = {
    "launch": Format(export_launch, by_period=True, by_framework=True),
    "dynamo": Format(_manifests(dynamo_graphs), by_period=True),
    "llm-d": Format(_manifests(llm_d_values), by_period=True),
    "lws": Format(_manifests(leader_worker_sets), by_period=True),
    "kueue": Format(_provided(lambda plan, asked: kueue_quotas(plan, asked.period)), by_period=True),
    "karpenter": Format(_provided(lambda plan, asked: karpenter_pools(plan, asked.period)), by_period=True),
    "gke": Format(
        _provided(lambda plan, asked: gke_pools(plan, asked.period, asked.locations)),
        by_period=True,
        by_location=True,
    ),
    "node-pools": Format(export_node_pools, by_period=True),
    "purchases": Format(lambda plan, asked: Exported({"purchases.json": purchase_changes(plan).encode()})),
    "workbook": Format(lambda plan, asked: Exported({WORKBOOK_FILE: workbook(plan)})),
}
