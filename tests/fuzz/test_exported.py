"""Exports of random plans agree with the plans, and the check finds missing and added parts."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fleetplan.planner.export.launch.files import FORMATS, Exported, ExportOptions
from fleetplan.planner.plan import Plan
from tests.cache_home import own_cache_home
from tests.fuzz.enlarged import enlarged
from tests.fuzz.exported import POOLS, SETS, export_faults
from tests.fuzz.fleets import random_fleet
from tests.fuzz.outcome import solved
from tests.fuzz.trial import TrialEffort

SEED = 930020
"""A fleet of two services with models in three regions, with rented pools."""

ENLARGED = 10
"""Plans that are made of its plan; all formats hold something of some."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv("XDG_CACHE_HOME", str(own_cache_home(tmp_path_factory.mktemp("cache"))))
        yield tmp_path_factory.mktemp("fleet")


@pytest.fixture(scope="module")
def planned(folder: Path) -> Plan:
    path = random_fleet(SEED, 4).write(folder)
    outcome = solved(path, TrialEffort(time_limit_s=60.0, gap_ratio=1.0)).plan
    assert isinstance(outcome, Plan)
    return outcome


def larger(plan: Plan) -> Iterator[Plan]:
    return (enlarged(plan, random.Random(number)) for number in range(ENLARGED))


def test_exports_of_plans_of_any_size_hold_what_is_planned(planned: Plan, folder: Path) -> None:
    assert [*export_faults(planned, folder)] == []
    written: Counter[str] = Counter()
    for plan in larger(planned):
        assert [*export_faults(plan, folder)] == []
        locations = {use.region: "us-east4-b" for use in plan.pools}
        written += Counter(
            form
            for form, each in FORMATS.items()
            if each.write(plan, ExportOptions(locations=locations)).files
        )
    assert set(written) == set(FORMATS)


NUMBERS = {
    "launch": r"^# (\d+) x ",
    "dynamo": r"type: (?:worker|prefill|decode)\n    replicas: (\d+)",
    "llm-d": r"  create: true\n  replicas: (\d+)",
    "lws": r"size: (\d+)",
    "kueue": r"nominalQuota: (\d+)",
    "karpenter": r"limits:\n    \S+: '(\d+)'",
    "gke": r"    count: (\d+)",
    "node-pools": r"(\d+),\d+\n\Z",
    "purchases": r'"accelerators": (\d+)',
}
"""A number of replicas or accelerators in the files of each format."""


@pytest.mark.parametrize("form", NUMBERS)
def test_another_number_in_an_export_is_seen(
    form: str, planned: Plan, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each number is halved, rounded down, in the first plan that has one."""

    def changed(text: str) -> str:
        return re.sub(
            NUMBERS[form],
            lambda found: found[0].replace(found[1], str(int(found[1]) // 2), 1),
            text,
            count=1,
            flags=re.MULTILINE,
        )

    write = FORMATS[form].write

    def writes_another(plan: Plan, asked: ExportOptions) -> Exported:
        written = write(plan, asked)
        files = {name: changed(content.decode()).encode() for name, content in written.files.items()}
        return Exported(files, written.refused)

    assert set(NUMBERS) == {*FORMATS} - {"workbook"}
    monkeypatch.setattr(
        "tests.fuzz.exported.FORMATS", {**FORMATS, form: replace(FORMATS[form], write=writes_another)}
    )
    assert any([*export_faults(plan, folder)] for plan in (planned, *larger(planned)))


@pytest.mark.parametrize("form", [*SETS, *POOLS])
def test_a_file_that_is_missing_is_seen(
    form: str, planned: Plan, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = FORMATS[form].write

    def writes_less(plan: Plan, asked: ExportOptions) -> Exported:
        written = write(plan, asked)
        return Exported(dict([*written.files.items()][1:]), written.refused)

    monkeypatch.setattr(
        "tests.fuzz.exported.FORMATS", {**FORMATS, form: replace(FORMATS[form], write=writes_less)}
    )
    assert any([*export_faults(plan, folder)] for plan in (planned, *larger(planned)))
