"""Plans of one service for exports, and the documented options of commands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.planner.whole_fleet import EVIL, FORMULA, whole_plan

from fleetplan.fleet.document.plain import read_yaml
from fleetplan.perfmodel.parallelism import parse_parallelism
from fleetplan.planner.export.launch.deployments import LaunchedGroup, deployments
from fleetplan.planner.export.launch.replica import FOLLOWER, Launch
from fleetplan.planner.export.launch.tools import tools
from fleetplan.planner.plan import Plan
from fleetplan.planner.plan.inputs import ClassInput, LaunchInput, VariantInput

DOCUMENTED = read_yaml((Path(__file__).parent / "documented_options.yaml").read_text(encoding="utf-8"))


def plan() -> Plan:
    """The plan of the whole fleet, its services with models and layouts."""
    found = whole_plan().plan
    assert found is not None
    assert found.inputs is not None
    variants = {
        EVIL: (VariantInput(name="", model="meta-llama/Llama-3.1-70B", weights="fp8", kv="fp8"),),
        FORMULA: (
            VariantInput(name="large", model="a/large", weights="bf16", kv="bf16"),
            VariantInput(name="small", model="a/small-AWQ", weights="int4", kv="bf16"),
        ),
    }
    services = tuple(
        each.model_copy(update={"variants": variants[each.name], "classes": with_lengths(each.classes)})
        for each in found.inputs.services
    )
    hardware = tuple(each.model_copy(update={"vendor": "NVIDIA"}) for each in found.inputs.hardware)
    rows = tuple(
        row.model_copy(update={"config": "TP1 b8" if row.service == EVIL else "small/PP2-TP2 b16"})
        for row in found.placements
    )
    launches = tuple(
        facts(*key) for key in {(row.service, row.phase, row.hardware, row.config) for row in rows}
    )
    update = {"services": services, "hardware": hardware, "launches": launches}
    inputs = found.inputs.model_copy(update=update)
    return found.model_copy(update={"inputs": inputs, "placements": rows})


def with_lengths(classes: tuple[ClassInput, ...]) -> tuple[ClassInput, ...]:
    return tuple(each.model_copy(update={"input_tokens": 1000, "output_tokens": 200}) for each in classes)


def facts(service: str, phase: str, hardware: str, config: str) -> LaunchInput:
    """A model with 64 query heads in groups of eight, experts, and memory for 20,000 tokens."""
    return LaunchInput(
        service=service,
        phase=phase,
        hardware=hardware,
        config=config,
        stored_weights=None,
        heads=64,
        kv_heads=8,
        latent_attention=False,
        experts=True,
        max_context_tokens=131072,
        sequence_tokens=20000,
        longest_request_tokens=None,
    )


def deployment(label: str = "TP2", **changes: object) -> LaunchedGroup:
    found, _ = deployments(plan(), None)
    first = next(each for each in found if each.placement.phase == "decode")
    return replace(first, layout=parse_parallelism(label), **changes)  # type: ignore[arg-type]


def stored_in_fp8(label: str, **changes: object) -> LaunchedGroup:
    """A deployment whose checkpoint every framework takes as it is."""
    each = deployment(label, **changes)
    return replace(each, variant=each.variant.model_copy(update={"checkpoint": "nvidia/large-FP8"}))


def options_of(started: Launch) -> dict[str, str]:
    """Options with their values, every one documented; '' for a flag."""
    table = DOCUMENTED[started.framework]
    words = list(started.words) if started.on_host is None else list(started.on_host(FOLLOWER))
    words += tools().framework(started.framework).listening
    words = words[words.index(table["command"][0]) :]
    assert words[: len(table["command"])] == table["command"]
    words = words[len(table["command"]) :]
    if not words[0].startswith("--"):
        words = words[1:]
    found = {}
    while words:
        option = words.pop(0)
        assert option in table["options"], option
        assert option not in found
        rule = table["options"][option]
        found[option] = "" if rule.get("flag") else words.pop(0)
        if "values" in rule:
            assert found[option] in rule["values"], option
    assert set(started.config) <= set(table.get("config", ()))
    return found
