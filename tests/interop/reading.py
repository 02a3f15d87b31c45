"""Exports as cases: every command of scripts and manifests, with the placement that it is to start."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fleetplan.fleet.document.plain import read_yaml
from fleetplan.perfmodel.parallelism import Configuration
from fleetplan.planner.export.launch.deployments import dns_name
from fleetplan.planner.plan import Placement, Plan
from tests.interop import judge
from tests.interop.cases import (
    ParserCase,
    capability_of,
    commands_of,
    config_of,
    dynamo_words,
    label_of,
    wanted,
    with_host,
)
from tests.interop.documents import read_all_yaml

SCENARIOS = Path(__file__).parents[2] / "src" / "fleetplan" / "scenarios"

VarianceFinding = tuple[str, str, str]
"""Where, whether it is refused or other, and why."""


def folder_of(scenario: str) -> Path:
    """Return the folder to which paths of a scenario's models are relative."""
    own = SCENARIOS / scenario
    return own if own.is_dir() else SCENARIOS


def largest_rows(plan: Plan, period: str) -> dict[str, Placement]:
    """Rows of a period by their label, each of the moment in which it has most replicas."""
    rows: dict[str, Placement] = {}
    for row in plan.placements:
        label = label_of(row)
        if row.period == period and (label not in rows or rows[label].replicas < row.replicas):
            rows[label] = row
    return rows


def cases_of(
    plan: Plan, scenario: str, exports: Path, *, models: Path | None = None, period: str | None = None
) -> Iterator[tuple[ParserCase, list[VarianceFinding]]]:
    """Yield every command of the exports of a plan, with the facts of its manifest.

    Parameters
    ----------
    plan : Plan
        With its inputs.
    scenario : str
        What findings call it.
    exports : Path
        A folder a format.
    models : Path, optional
        Where the paths of models are relative to; the folder of a packaged scenario if left out.
    period : str, optional
        Of the exports; the first if left out.
    """
    folder = folder_of(scenario) if models is None else models
    rows = largest_rows(plan, period or plan.periods[0])

    def case(source: str, framework: str, words: Sequence[str], row: Placement) -> ParserCase:
        assert plan.inputs is not None
        want = wanted(plan, row)
        service = next(each for each in plan.inputs.services if each.name == row.service)
        named = Configuration.parse(row.config).variant
        variant = next(each for each in service.variants if each.name == named)
        room = next(
            (
                each.sequence_tokens
                for each in plan.inputs.launches
                if (each.service, each.phase, each.hardware, each.config)
                == (row.service, row.phase, row.hardware, row.config)
            ),
            None,
        )
        return ParserCase(
            source,
            framework,
            tuple(words),
            config_of(variant.model, folder),
            capability_of(row.hardware),
            want | {"framework": service.framework},
            row,
            room,
        )

    script = exports / "launch" / "launch.sh"
    for label, words in commands_of(script.read_text("utf-8")) if script.is_file() else ():
        framework, rest = framework_of(words)
        yield case(f"{scenario}/launch {label}", framework, rest, rows[label]), []
    for file in sorted((exports / "dynamo").glob("*.yaml")):
        yield from _dynamo(scenario, file, plan, rows, case)
    for file in sorted((exports / "llm-d").glob("*.yaml")):
        yield _llm_d(scenario, file, plan, rows, case)
    for file in sorted((exports / "lws").glob("*.yaml")):
        yield from _lws(scenario, file, rows, case)


def framework_of(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The framework of a command, and its words after the program."""
    if list(words[:2]) == ["vllm", "serve"]:
        return "vllm", words[2:]
    if "sglang.launch_server" in words:
        return "sglang", words[list(words).index("sglang.launch_server") + 1 :]
    return "trtllm", words


def _dynamo(scenario: str, file: Path, plan: Plan, rows: Mapping[str, Placement], case: Any) -> Iterator[Any]:
    text = file.read_text("utf-8")
    graph = read_yaml(text)
    refusals = judge.graph_refusals(graph)
    frontend = next(each for each in graph["spec"]["components"] if each["type"] == "frontend")
    for name, component, arguments in dynamo_words(text):
        row = row_of(component, arguments, graph, rows)
        source = f"{scenario}/dynamo {graph['metadata']['name']}/{name}"
        framework = graph["spec"]["backendFramework"]
        words = [*arguments]
        if framework == "vllm":
            words = without(words, "--disaggregation-mode")
            words.remove("--model")
        words += operator_adds(component, words, framework)
        found = case(source, framework, words, row)
        findings = [(source, "refused", why) for why in refusals[name] + refusals[frontend["name"]]]
        findings += [(source, "other", why) for why in judge.component_differences(component, found.wanted)]
        yield found, findings


def operator_adds(component: Any, words: Sequence[str], framework: str) -> list[str]:
    """Return the arguments that Dynamo's operator adds on the first of several hosts.

    Source: ai-dynamo/dynamo@003d1ee, deploy/operator/internal/dynamo: backend_vllm.go
    (injectMpDistributedLaunchFlags, injectDataParallelLaunchFlags) and backend_sglang.go.
    """
    hosts = component.get("multinode", {}).get("nodeCount", 1)
    if hosts == 1:
        return []
    if framework == "sglang":
        return ["--dist-init-addr", "127.0.0.1:29500", "--nnodes", str(hosts), "--node-rank", "0"]
    (on_host,) = component["podTemplate"]["spec"]["containers"][0]["resources"]["limits"].values()
    ranks = degree(words, "--tensor-parallel-size") * degree(words, "--pipeline-parallel-size")
    if ranks > int(on_host):
        place = ["--nnodes", str(hosts), "--node-rank", "0", "--master-addr", "127.0.0.1"]
        return ["--distributed-executor-backend", "mp", *place, "--master-port", "29500"]
    local = ["--data-parallel-size-local", str(int(on_host) // ranks), "--data-parallel-start-rank", "0"]
    place = ["--data-parallel-address", "127.0.0.1", "--data-parallel-rpc-port", "13445"]
    return ["--data-parallel-hybrid-lb", *local, *place]


def degree(words: Sequence[str], option: str) -> int:
    """The value of a degree; 1 where it is not given."""
    return int(words[list(words).index(option) + 1]) if option in words else 1


def _llm_d(scenario: str, file: Path, plan: Plan, rows: Mapping[str, Placement], case: Any) -> Any:
    assert plan.inputs is not None
    values = read_yaml(file.read_text("utf-8"))
    role = "prefill" if values["prefill"]["create"] else "decode"
    container = values[role]["containers"][0]
    words = list(container["args"])
    if container["command"][0] == "/bin/sh":
        script = words[0].split("; else exec ", 1)[1].rsplit("; fi", 1)[0]
        words = with_host(shlex.split(script))[2:]
    words = without(words, "--port")
    label = file.name.removesuffix(".llm-d.yaml")
    found = case(f"{scenario}/llm-d {label}", "vllm", words, _row_named(label, rows))
    vendor = next(each.vendor for each in plan.inputs.hardware if each.name == found.row.hardware)
    differences = [
        *judge.chart_differences(values, found.wanted, vendor or ""),
        *judge.address_differences(container),
    ]
    return found, [(found.source, "other", why) for why in differences]


def _row_named(label: str, rows: Mapping[str, Placement]) -> Placement:
    """The placement whose manifest bears a name."""
    for row in rows.values():
        if dns_name(f"{row.service}-{row.pool}-{row.phase}-{row.config}") == label:
            return row
    raise LookupError(f"no placement is called {label}")


def _lws(scenario: str, file: Path, rows: Mapping[str, Placement], case: Any) -> Iterator[Any]:
    """The command of each kind of pod of a LeaderWorkerSet."""
    (found,) = read_all_yaml(file.read_text("utf-8"))
    label, spec = found["metadata"]["name"], found["spec"]
    row = _row_named(label, rows)
    for role in ("leaderTemplate", "workerTemplate"):
        if role not in spec["leaderWorkerTemplate"]:
            continue
        container = spec["leaderWorkerTemplate"][role]["spec"]["containers"][0]
        words = with_host(shlex.split(container["args"][0].removeprefix("exec ")))
        framework, rest = framework_of(words)
        for option in ("--port", "--host"):
            rest = without(rest, option)
        each = case(f"{scenario}/lws {label} {role}", framework, rest, row)
        differences = [
            *judge.set_differences(spec, container, each.wanted, row),
            *judge.address_differences(container),
        ]
        yield each, [(each.source, "other", why) for why in differences]


def without(words: Sequence[str], option: str) -> list[str]:
    """Words without an option and its value."""
    if option not in words:
        return list(words)
    place = list(words).index(option)
    return [*words[:place], *words[place + 2 :]]


def row_of(component: Any, arguments: Sequence[str], graph: Any, rows: Mapping[str, Placement]) -> Placement:
    """The placement of a component: pool, phase, replicas and layout tell it."""
    selector = component["podTemplate"]["spec"]["nodeSelector"]["fleetplan/pool"]
    phase = "aggregated" if component["type"] == "worker" else component["type"]
    graph_name = graph["metadata"]["name"]
    fitting = [
        row
        for row in rows.values()
        if dns_name(row.pool) == selector
        and row.phase == phase
        and row.replicas == component["replicas"]
        and (
            component["name"] == dns_name(f"{row.service}-{row.pool}-{row.phase}-{row.config}")
            or any(
                component["name"] == dns_name(f"{row.phase}-{row.pool}-{row.config}", n) for n in range(8, 46)
            )
        )
        and any(graph_name == dns_name(f"{row.service}-{row.region}", n) for n in range(8, 46))
    ]
    if len(fitting) != 1:
        raise LookupError(f"{len(fitting)} placements fit {graph_name}/{component['name']}")
    return fitting[0]
