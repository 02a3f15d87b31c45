"""The files of `plan export`, by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fleetplan.planner.export.launch.commands import FRAMEWORKS, launch
from fleetplan.planner.export.launch.deployments import LaunchedGroup, NotLaunched, deployments
from fleetplan.planner.export.launch.dynamo import dynamo_graphs
from fleetplan.planner.export.launch.llm_d import llm_d_values
from fleetplan.planner.export.launch.replica import Launch
from fleetplan.planner.export.launch.supply import node_pools, purchase_changes
from fleetplan.planner.export.launch.tools import tools
from fleetplan.planner.export.workbook import WORKBOOK_FILE, workbook
from fleetplan.planner.plan import Plan


@dataclass(frozen=True, slots=True)
class Exported:
    """Files by name, and the placements that none of them holds."""

    files: Mapping[str, bytes]
    refused: tuple[NotLaunched, ...] = ()


def export_launch(plan: Plan, period: str | None, framework: str | None) -> Exported:
    """Return one shell script with a command a set of replicas, and the files that the commands name.

    Parameters
    ----------
    plan : Plan
        What to launch.
    period : str or None
        None is the first.
    framework : str or None
        vllm, sglang or trtllm; None takes each service's own.
    """
    found, unread = deployments(plan, period)
    refused = list(unread)
    files: dict[str, bytes] = {}
    title = json.dumps(f"{plan.fleet}, {period or plan.periods[0]}")
    blocks = [f"# {title}: one command starts one replica."]
    for name in FRAMEWORKS:
        rules = tools().framework(name)
        blocks.append(f"# Options of {name} {rules.version}, read in: {rules.source}.")
    for each in found:
        started = launch(each, framework or each.service.framework)
        if isinstance(started, NotLaunched):
            refused.append(started)
            continue
        blocks.append(_block(each, started))
        if started.config:
            files[f"{each.name}.yaml"] = started.config_text.encode()
    return Exported({"launch.sh": ("\n".join(blocks) + "\n").encode(), **files}, tuple(refused))


def _block(each: LaunchedGroup, started: Launch) -> str:
    """One command with what it is for; names are written in JSON, so that no line break ends the comment."""
    lines = ["", f"# {each.placement.replicas} x {json.dumps(each.label)}"]
    lines += [f"# {note}" for note in started.notes]
    return "\n".join([*lines, started.text])


def export_dynamo(plan: Plan, period: str | None, framework: str | None) -> Exported:
    """Return graph deployments; `framework` is not asked for, as each service has its own."""
    return _manifests(plan, period, dynamo_graphs)


def export_llm_d(plan: Plan, period: str | None, framework: str | None) -> Exported:
    """Return values of the llm-d chart, which runs vLLM."""
    return _manifests(plan, period, llm_d_values)


_Writer = Callable[[Sequence[LaunchedGroup]], tuple[dict[str, str], tuple[NotLaunched, ...]]]


def _manifests(plan: Plan, period: str | None, write: _Writer) -> Exported:
    found, unread = deployments(plan, period)
    texts, refused = write(found)
    return Exported({name: text.encode() for name, text in texts.items()}, (*unread, *refused))


def export_node_pools(plan: Plan, period: str | None, framework: str | None) -> Exported:
    """Return the nodes of all periods, or of one."""
    table = node_pools(plan)
    rows = table if period is None else table[table["period"] == period]
    return Exported({"node-pools.csv": rows.to_csv(index=False).encode()})


def export_purchases(plan: Plan, period: str | None, framework: str | None) -> Exported:
    """Return what is bought, rented and retired."""
    return Exported({"purchases.json": purchase_changes(plan).encode()})


def export_workbook(plan: Plan, period: str | None, framework: str | None) -> Exported:
    """Return the workbook for finance."""
    return Exported({WORKBOOK_FILE: workbook(plan)})


@dataclass(frozen=True, slots=True)
class Format:
    """A format of `plan export`: what writes it, and which options it has."""

    write: Callable[[Plan, str | None, str | None], Exported]
    by_period: bool = False
    by_framework: bool = False


FORMATS: Final[Mapping[str, Format]] = {
    "launch": Format(export_launch, by_period=True, by_framework=True),
    "dynamo": Format(export_dynamo, by_period=True),
    "llm-d": Format(export_llm_d, by_period=True),
    "node-pools": Format(export_node_pools, by_period=True),
    "purchases": Format(export_purchases),
    "workbook": Format(export_workbook),
}
