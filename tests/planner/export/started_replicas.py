"""Launched replicas, or the reasons why they cannot be launched."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fleetplan.fleet.document.plain import read_yaml
from fleetplan.planner.export.launch.commands import launch
from fleetplan.planner.export.launch.deployments import LaunchedGroup, NotLaunched
from fleetplan.planner.export.launch.llm_d import llm_d_values
from fleetplan.planner.export.launch.replica import Launch


def started(each: LaunchedGroup, framework: str = "vllm") -> Launch:
    found = launch(each, framework)
    assert isinstance(found, Launch), found.reason
    return found


def reason(each: LaunchedGroup, framework: str = "vllm") -> str:
    found = launch(each, framework)
    assert isinstance(found, NotLaunched)
    return found.reason


def with_phase(each: LaunchedGroup, phase: str) -> LaunchedGroup:
    return replace(each, placement=each.placement.model_copy(update={"phase": phase}))


def with_variant(each: LaunchedGroup, **changes: object) -> LaunchedGroup:
    return replace(each, variant=each.variant.model_copy(update=changes))


def with_service(each: LaunchedGroup, **changes: object) -> LaunchedGroup:
    return replace(each, service=each.service.model_copy(update=changes))


def on_hosts_of(each: LaunchedGroup, accelerators: int, vendor: str = "NVIDIA") -> LaunchedGroup:
    update = {"accelerators_per_host": accelerators, "vendor": vendor}
    return replace(each, hardware=each.hardware.model_copy(update=update))


def values_of(each: LaunchedGroup) -> dict[str, Any]:
    texts, refused = llm_d_values([each])
    assert not refused, refused[0].reason
    (text,) = texts.values()
    assert text.startswith("# llm-d-modelservice 0.4.12: ")
    found: dict[str, Any] = read_yaml(text)
    return found
