"""The output of `plan check` fits on a screen; `--full` omits nothing."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from tests.planner.builders import candidate, fleet, hardware, service

from fleetplan.planner.candidates import CandidateSet
from fleetplan.planner.plan import Rejections, StatedTable
from fleetplan.planner.report.coverage import print_coverage

REASONS = {"tpot": 10, "dominated": 60, "ttft": 5, "memory: weights": 25}
VERSIONS = ("0.5.12", "0.5.10")


@pytest.mark.parametrize(
    ("full", "chat"),
    [
        (False, "dominated 60%, memory: weights 25%, 2 more"),
        (True, "dominated 60, memory: weights 25, tpot 10, ttft 5"),
    ],
    ids=("brief", "full"),
)
def test_the_most_frequent_reasons_come_first(full: bool, chat: str) -> None:
    said = printed(full)
    (line,) = [line for line in said if line.startswith("chat ")]
    assert line.endswith(chat)
    # Where nothing is left, the reader needs every reason.
    (line,) = [line for line in said if line.startswith("batch ")]
    assert line.endswith("dominated 60, memory: weights 25, tpot 10, ttft 5")


def test_versions_of_a_framework_share_a_line() -> None:
    assert "  measured tables of tables 1.0: h100, sglang 0.5.10, 0.5.12" in printed()


def test_kinds_of_numbers_that_nothing_rests_on_have_no_column() -> None:
    header = printed()[0].split()
    assert "given" in header
    assert "measured" not in header


def printed(full: bool = False) -> list[str]:
    asked = fleet(services=[service("chat", 1.0), service("batch", 1.0)], hardware=[hardware("A", 1)])
    left_out = tuple(
        Rejections(service=name, counts=REASONS, by_hardware={"A": REASONS}) for name in ("chat", "batch")
    )
    tables = tuple(
        StatedTable(
            package="tables",
            package_version="1.0",
            system="h100",
            framework="sglang",
            framework_version=version,
            path=f"{version}.csv",
            sha256="0" * 64,
        )
        for version in VERSIONS
    )
    found = CandidateSet((candidate("chat", "A", 1.0),), left_out, tables, ())
    out = io.StringIO()
    print_coverage(asked, found, Console(file=out, width=200), full)
    return [line.rstrip() for line in out.getvalue().splitlines()]
