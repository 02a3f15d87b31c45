"""Counts what the real tools make of exports: `python -m tests.interop PYTHON [--plans DIR] [--crds DIR]`.

PYTHON is the interpreter of the interop environment. --plans holds a folder a scenario with its plan.json;
without it every scenario is solved first. --crds is a folder of CustomResourceDefinitions that objects are
held to besides. Exits 1 if anything is refused, or would start something else than was planned.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fleetplan.fleet.document.plain import read_yaml
from fleetplan.fleet.errors import InputError
from fleetplan.planner.export.launch.files import FORMATS, ExportOptions
from fleetplan.planner.plan import Plan, read_plan
from tests.interop import judge
from tests.interop.cases import ParserCase
from tests.interop.objects import chart_refusals, refusals
from tests.interop.reading import SCENARIOS, VarianceFinding, cases_of
from tests.interop.rules import rules_of

HERE = Path(__file__).parent

OBJECTS = ("dynamo", "lws", "kueue", "karpenter", "gke")
"""Formats whose files hold objects with schemas of their own."""


def verdicts(python: str, check: str, cases: Iterable[object]) -> list[dict[str, Any]]:
    """Return the verdicts of a check on cases."""
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


def findings_of(cases: Sequence[ParserCase], python: str) -> Iterator[VarianceFinding]:
    """Return the findings of the frameworks about commands."""
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


def pods(exports: Path, python: str) -> Iterator[VarianceFinding]:
    """Return the findings of the Kubernetes schema about the pods of manifests."""
    found: dict[str, object] = {}
    for file in sorted(exports.glob("*/dynamo/*.yaml")):
        for component in read_yaml(file.read_text("utf-8"))["spec"]["components"]:
            found[f"{file} {component['name']}"] = component["podTemplate"]["spec"]
    for file in sorted(exports.glob("*/llm-d/*.yaml")):
        values = read_yaml(file.read_text("utf-8"))
        part = values["prefill" if values["prefill"]["create"] else "decode"]
        # What the chart does not know of the pod it takes out of the container.
        container = {key: value for key, value in part["containers"][0].items() if key != "modelCommand"}
        found[str(file)] = {"nodeSelector": part["nodeSelector"], "containers": [container]}
    for file in sorted(exports.glob("*/lws/*.yaml")):
        template = read_yaml(file.read_text("utf-8"))["spec"]["leaderWorkerTemplate"]
        for role in ("leaderTemplate", "workerTemplate"):
            if role in template:
                found[f"{file} {role}"] = template[role]["spec"]
    for place, answer in zip(found, verdicts(python, "check_kubernetes", found.values()), strict=True):
        if "refused" in answer:
            yield place, "refused", answer["refused"]


def purchases(plans: Mapping[Path, Plan], python: str) -> Iterator[VarianceFinding]:
    """Return the findings of a Rego policy on planned changes, by file, against purchases and retirements."""
    policy = (Path(__file__).parents[2] / "docs" / "formats.md").read_text("utf-8")
    policy = policy.split("```rego\n", 1)[1].split("```", 1)[0]
    cases = [{"policy": policy, "input": json.loads(file.read_text("utf-8"))} for file in plans]
    for (file, plan), answer in zip(plans.items(), verdicts(python, "check_rego", cases), strict=True):
        if "refused" in answer:
            yield str(file), "refused", answer["refused"]
        elif (seen := len(answer["seen"])) != (bought := sum(not row.price_as_of for row in plan.purchases)):
            yield (
                str(file),
                "other",
                f"{bought} purchases without a date of their price, the policy denies {seen}",
            )


def refused_rules(asked: Mapping[str, dict[str, Any]], python: str) -> Iterator[VarianceFinding]:
    """Return the findings of CustomResourceDefinition rules about objects."""
    for place, answer in zip(asked, verdicts(python, "check_cel", asked.values()), strict=True):
        if "refused" in answer:
            yield place, "refused", answer["refused"]


def main(plans: Path, exports: Path, python: str, crds: Path | None) -> int:
    """Print figures and findings; 0 if there are none."""
    cases, findings = [], []
    bought: dict[Path, Plan] = {}
    asked: dict[str, dict[str, Any]] = {}
    checked: Counter[str] = Counter()
    for folder in sorted(each for each in plans.iterdir() if (each / "plan.json").is_file()):
        plan, own = read_plan(folder / "plan.json"), exports / folder.name
        for case, found in cases_of(plan, folder.name, own):
            cases.append(case)
            findings += found
        for form in OBJECTS:
            texts = {file.name: file.read_text("utf-8") for file in sorted((own / form).glob("*.yaml"))}
            checked[form] += len(texts)
            findings += [
                (f"{folder.name}/{form} {place}", "refused", why) for place, why in refusals(texts, crds)
            ]
            if crds is not None:
                asked |= {
                    f"{folder.name}/{form} {place} {number}": case
                    for number, (place, case) in enumerate(rules_of(texts, crds))
                }
        values = {file.name: file.read_text("utf-8") for file in sorted((own / "llm-d").glob("*.yaml"))}
        findings += [
            (f"{folder.name}/llm-d {place}", "refused", why) for place, why in chart_refusals(values)
        ]
        bought[own / "purchases" / "purchases.json"] = plan
    findings += purchases(bought, python)
    findings += findings_of(cases, python)
    findings += pods(exports, python)
    findings += refused_rules(asked, python)
    for place, kind, why in sorted(set(findings)):
        print(f"{kind}: {place}: {why.splitlines()[0]}")
    by_kind = {
        kind: {place for place, found, _ in findings if found == kind} for kind in ("refused", "other")
    }
    formats = Counter(each.source.split(" ")[0].split("/")[1] for each in cases)
    print(f"commands: {dict(formats)}; files of objects: {dict(checked)}")
    print(f"rules of definitions: {len(asked)}")
    print(f"refused: {len(by_kind['refused'])}")
    print(f"started as something else: {len(by_kind['other'])}")
    return 1 if findings else 0


def solved(into: Path) -> Path:
    """Solve every scenario, and the fleets of this folder, within 5 % of their least cost."""
    own = [each / "fleet.yaml" for each in SCENARIOS.iterdir() if (each / "fleet.yaml").is_file()]
    for file in sorted([*SCENARIOS.glob("*.yaml"), *own, *HERE.glob("fleets/*.yaml")]):
        name = file.parent.name if file.name == "fleet.yaml" else file.stem
        # The gap ends a search; the limit is for a machine with other work.
        options = ["--gap", "5%", "--time-limit", "600", "--out", str(into / name)]
        subprocess.run([sys.executable, "-m", "fleetplan.planner", str(file), *options], check=True)
    return into


def exported(plans: Path, into: Path) -> Path:
    """Write every export of every plan that a format can hold anything of."""
    for folder in sorted(plans.iterdir()):
        plan = read_plan(folder / "plan.json")
        locations = {use.region: "us-east4" for use in plan.pools}
        for form in ("launch", "llm-d", "purchases", *OBJECTS):
            try:
                files = FORMATS[form].write(plan, ExportOptions(locations=locations)).files
            except InputError as error:
                print(f"{folder.name} {form}: {error}")
                continue
            target = into / folder.name / form
            target.mkdir(parents=True)
            for name, content in files.items():
                (target / name).write_bytes(content)
    return into


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("python")
    parser.add_argument("--plans", type=Path)
    parser.add_argument("--crds", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        stored = given.plans or solved(Path(scratch) / "plans")
        written = exported(stored, Path(scratch) / "exports")
        raise SystemExit(main(stored, written, given.python, given.crds))
