"""Counts what the real tools make of exports: `python -m tests.interop PYTHON [PLANS [EXPORTS]]`.

PYTHON is the interpreter of the interop environment. PLANS holds a folder a scenario with its plan.json,
EXPORTS one with the exports launch, dynamo and llm-d; what is not given is solved and exported first. Exits 1
if any command or manifest is refused, or would start something else than was planned.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from fleetplan.planner.export.launch.deployments import dns_name
from fleetplan.planner.plan import Placement, Plan, read_plan
from tests.interop import judge
from tests.interop.cases import (
    Case,
    capability_of,
    commands_of,
    config_of,
    dynamo_words,
    label_of,
    wanted,
    with_host,
)

HERE = Path(__file__).parent
SCENARIOS = Path(__file__).parents[2] / "src" / "fleetplan" / "scenarios"

Finding = tuple[str, str, str]
"""Where, whether it is refused or other, and why."""


def folder_of(scenario: str) -> Path:
    """Where the paths of a scenario's models are relative to."""
    own = SCENARIOS / scenario
    return own if own.is_dir() else SCENARIOS


def cases_of(plan: Plan, scenario: str, exports: Path) -> Iterator[tuple[Case, list[Finding]]]:
    """Every command of the exports of a plan, with what its manifest is found to be."""
    rows: dict[str, Placement] = {}
    for row in plan.placements:
        label = label_of(row)
        if row.period == plan.periods[0] and (label not in rows or rows[label].replicas < row.replicas):
            rows[label] = row

    def case(source: str, framework: str, words: Sequence[str], row: Placement) -> Case:
        assert plan.inputs is not None
        want = wanted(plan, row)
        service = next(each for each in plan.inputs.services if each.name == row.service)
        variant = next(each for each in service.variants if row.config.startswith(each.name))
        room = next(
            (
                each.sequence_tokens
                for each in plan.inputs.launches
                if (each.service, each.phase, each.hardware, each.config)
                == (row.service, row.phase, row.hardware, row.config)
            ),
            None,
        )
        return Case(
            source,
            framework,
            tuple(words),
            config_of(variant.model, folder_of(scenario)),
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


def framework_of(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The framework of a command, and its words after the program."""
    if list(words[:2]) == ["vllm", "serve"]:
        return "vllm", words[2:]
    if "sglang.launch_server" in words:
        return "sglang", words[list(words).index("sglang.launch_server") + 1 :]
    return "trtllm", words


def _dynamo(scenario: str, file: Path, plan: Plan, rows: Mapping[str, Placement], case: Any) -> Iterator[Any]:
    text = file.read_text("utf-8")
    graph = yaml.safe_load(text)
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
        found = case(source, framework, words, row)
        findings = [(source, "refused", why) for why in refusals[name] + refusals[frontend["name"]]]
        findings += [(source, "other", why) for why in judge.component_differences(component, found.wanted)]
        yield found, findings


def _llm_d(scenario: str, file: Path, plan: Plan, rows: Mapping[str, Placement], case: Any) -> Any:
    assert plan.inputs is not None
    values = yaml.safe_load(file.read_text("utf-8"))
    role = "prefill" if values["prefill"]["create"] else "decode"
    container = values[role]["containers"][0]
    words = list(container["args"])
    if container["command"][0] == "/bin/sh":
        script = words[0].split("; else exec ", 1)[1].rsplit("; fi", 1)[0]
        words = with_host(shlex.split(script))[2:]
    words = without(words, "--port")
    label = file.name.removesuffix(".llm-d.yaml")
    row = next(
        row
        for row in rows.values()
        if dns_name(f"{row.service}-{row.pool}-{row.phase}-{row.config}") == label
    )
    found = case(f"{scenario}/llm-d {label}", "vllm", words, row)
    vendor = next(each.vendor for each in plan.inputs.hardware if each.name == row.hardware)
    return found, [
        (found.source, "other", why) for why in judge.chart_differences(values, found.wanted, vendor or "")
    ]


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
        raise SystemExit(f"{len(fitting)} placements fit {graph_name}/{component['name']}")
    return fitting[0]


def verdicts(python: str, check: str, cases: Iterable[object]) -> list[dict[str, Any]]:
    """What a check says of cases."""
    done = subprocess.run(
        [python, str(HERE / f"{check}.py")],
        input=json.dumps(list(cases)),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{check} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def findings_of(cases: Sequence[Case], python: str) -> Iterator[Finding]:
    """What the frameworks say of commands."""
    for framework in ("vllm", "sglang"):
        own = [each for each in cases if each.framework == framework]
        # The same command stands in several exports: each is asked once.
        asked = {json.dumps(each.as_json(), sort_keys=True): each for each in own}
        answers = dict(
            zip(
                asked,
                verdicts(python, f"check_{framework}", (each.as_json() for each in asked.values())),
                strict=True,
            )
        )
        for each in own:
            answer = answers[json.dumps(each.as_json(), sort_keys=True)]
            if "refused" in answer:
                yield each.source, "refused", answer["refused"]
                continue
            seen = answer["seen"]
            if each.room is not None and (seen["longest"] or 0) > each.room:
                yield (
                    each.source,
                    "refused",
                    f"asks for the cache of {seen['longest']} tokens, {each.room} have room",
                )
            for why in judge.differences(each.wanted, seen, framework):
                yield each.source, "other", why


def pods(exports: Path, python: str) -> Iterator[Finding]:
    """What the schema of Kubernetes says of the pods of manifests."""
    found: dict[str, object] = {}
    for file in sorted(exports.glob("*/dynamo/*.yaml")):
        for component in yaml.safe_load(file.read_text("utf-8"))["spec"]["components"]:
            found[f"{file} {component['name']}"] = component["podTemplate"]["spec"]
    for file in sorted(exports.glob("*/llm-d/*.yaml")):
        values = yaml.safe_load(file.read_text("utf-8"))
        part = values["prefill" if values["prefill"]["create"] else "decode"]
        # What the chart does not know of the pod it takes out of the container.
        container = {key: value for key, value in part["containers"][0].items() if key != "modelCommand"}
        found[str(file)] = {"nodeSelector": part["nodeSelector"], "containers": [container]}
    for place, answer in zip(found, verdicts(python, "check_kubernetes", found.values()), strict=True):
        if "refused" in answer:
            yield place, "refused", answer["refused"]


def main(plans: Path, exports: Path, python: str) -> int:
    """Print figures and findings; 0 if there are none."""
    cases, findings = [], []
    for folder in sorted(each for each in plans.iterdir() if (each / "plan.json").is_file()):
        plan = read_plan(folder / "plan.json")
        for case, found in cases_of(plan, folder.name, exports / folder.name):
            cases.append(case)
            findings += found
    findings += findings_of(cases, python)
    findings += pods(exports, python)
    for place, kind, why in sorted(set(findings)):
        print(f"{kind}: {place}: {why.splitlines()[0]}")
    by_kind = {
        kind: {place for place, found, _ in findings if found == kind} for kind in ("refused", "other")
    }
    formats = Counter(each.source.split(" ")[0].split("/")[1] for each in cases)
    print(f"commands: {dict(formats)}")
    print(f"refused: {len(by_kind['refused'])}")
    print(f"started as something else: {len(by_kind['other'])}")
    return 1 if findings else 0


def solved(into: Path) -> Path:
    """Solve every scenario within 5 % of its least cost."""
    own = [each / "fleet.yaml" for each in SCENARIOS.iterdir() if (each / "fleet.yaml").is_file()]
    for file in sorted([*SCENARIOS.glob("*.yaml"), *own]):
        name = file.parent.name if file.name == "fleet.yaml" else file.stem
        options = ["--gap", "5%", "--time-limit", "60", "--out", str(into / name)]
        subprocess.run([sys.executable, "-m", "fleetplan.planner", str(file), *options], check=True)
    return into


def exported(plans: Path, into: Path) -> Path:
    """Write every export of every plan that a format can hold anything of."""
    for folder in sorted(plans.iterdir()):
        for form in ("launch", "dynamo", "llm-d"):
            words = [
                "export",
                str(folder / "plan.json"),
                "--as",
                form,
                "--out",
                str(into / folder.name / form),
            ]
            subprocess.run([sys.executable, "-m", "fleetplan.planner", *words], check=False)
    return into


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        given = [Path(word) for word in sys.argv[2:]]
        stored = given[0] if given else solved(Path(scratch) / "plans")
        written = given[1] if len(given) > 1 else exported(stored, Path(scratch) / "exports")
        raise SystemExit(main(stored, written, sys.argv[1]))
