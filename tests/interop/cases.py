"""Every command of a plan's exports, with what the plan says it must start."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fleetplan.fleet.catalog.models import model_catalog, resolve
from fleetplan.fleet.document.plain import read_yaml
from fleetplan.perfmodel.parallelism import Configuration
from fleetplan.planner.plan import Placement, Plan

CAPABILITIES: Final = {"A100": [8, 0], "L4": [8, 9], "H": [9, 0], "GH": [9, 0], "B": [10, 0], "GB": [10, 0]}
"""CUDA compute capability by the beginning of a hardware name; other vendors are checked as a Hopper card."""

HOST_VARIABLES: Final = {
    "$LEADER_ADDRESS": "127.0.0.1",
    "$LWS_LEADER_ADDRESS": "127.0.0.1",
    "$NODE_RANK": "1",
    "$LWS_WORKER_INDEX": "1",
    "$(POD_IP)": "127.0.0.1",
}


@dataclass(frozen=True)
class ParserCase:
    """A command with its file, its words, and what it must start."""

    source: str
    framework: str
    words: tuple[str, ...]
    config: Mapping[str, object]
    capability: list[int]
    wanted: Mapping[str, object]
    row: Placement
    room: int | None = None

    def as_json(self) -> dict[str, object]:
        return {"words": list(self.words), "config": dict(self.config), "capability": self.capability}


@dataclass
class Exports:
    """The exports of one plan: commands, and manifests by file name."""

    commands: list[ParserCase] = field(default_factory=list)
    manifests: dict[str, str] = field(default_factory=dict)


def config_of(model: str, folder: Path) -> Mapping[str, object]:
    """The config.json of a model as a fleet file names it."""
    path = folder / model
    if path.is_file():
        return json.loads(path.read_text(encoding="utf-8"))  # type: ignore[no-any-return]
    return model_catalog()[resolve(model)].config


def wanted(plan: Plan, row: Placement) -> dict[str, object]:
    """Return what a command of a placement must start, from the plan alone."""
    assert plan.inputs is not None
    service = next(each for each in plan.inputs.services if each.name == row.service)
    configuration = Configuration.parse(row.config)
    layout = configuration.layout
    variant = next(each for each in service.variants if each.name == configuration.variant)
    hardware = next(each for each in plan.inputs.hardware if each.name == row.hardware)
    mean = max(
        (each.context_tokens or each.input_tokens or 0) + (each.output_tokens or 0)
        for each in service.classes
    )
    facts = next(
        each
        for each in plan.inputs.launches
        if (each.service, each.phase, each.hardware, each.config)
        == (row.service, row.phase, row.hardware, row.config)
    )
    hosts = -(-layout.accelerators // hardware.accelerators_per_host)
    # Of classes with batches of their own the largest is the limit.
    batch = configuration.batch or max(facts.batches.values(), default=None)
    return {
        "checkpoint": variant.checkpoint or variant.model,
        "accelerators": layout.accelerators,
        "pp": layout.pp,
        "dp": layout.dp,
        "cp": layout.cp,
        "experts": layout.ep > 1,
        "hosts": hosts,
        "weights": variant.weights,
        # What the published checkpoint stores; of one's own its name tells alone.
        "stored": None if variant.checkpoint else (facts.stored_weights or "bf16"),
        "kv": variant.kv,
        "mean": mean,
        "sequences": None if batch is None else batch * layout.pp,
        "chunk": service.chunk_tokens,
        "phase": row.phase,
        "prefix_caching": service.prefix_caching,
        "drafted": 0 if row.phase == "prefill" else service.draft_tokens or 0,
    }


def capability_of(hardware: str) -> list[int]:
    return next(
        (
            value
            for name, value in sorted(CAPABILITIES.items(), key=lambda each: -len(each[0]))
            if hardware.startswith(name)
        ),
        [9, 0],
    )


def commands_of(script: str) -> Iterator[tuple[str, list[str]]]:
    """The label of each block of a launch script, and the words of each of its commands."""
    label = ""
    for line in script.splitlines():
        # What is left out stands in the head, behind words of its own.
        if re.match(r"# \d+ x ", line):
            label = json.loads(line.split(" x ", 1)[1])
        elif line and not line.startswith("#"):
            yield label, with_host(shlex.split(line))


def with_host(words: list[str]) -> list[str]:
    """Words with the variables of a host filled in."""
    filled = []
    for word in words:
        text = word
        for name, value in HOST_VARIABLES.items():
            text = text.replace(name, value)
        filled.append(text)
    return filled


def label_of(row: Placement) -> str:
    return f"{row.service} {row.phase} {row.config} on {row.hardware} in {row.pool}"


def dynamo_words(manifest: str) -> Iterator[tuple[str, dict[str, object], list[str]]]:
    """Name, component and arguments of each worker of a graph."""
    graph = read_yaml(manifest)
    for component in graph["spec"]["components"]:
        container = component["podTemplate"]["spec"]["containers"][0]
        if "args" in container:
            yield component["name"], component, with_host(container["args"])
