"""Cores that a process may use, also where the system does not say which, and what its children find."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fleetplan.fleet.machine import child_environment, usable_cores

ROOT = Path(__file__).parents[2]


def test_cores_that_others_have_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 5}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert usable_cores() == 2


@pytest.mark.parametrize(("of_the_machine", "counted"), [(12, 12), (None, 1)])
def test_systems_that_name_no_cores_have_all_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, of_the_machine: int | None, counted: int
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: of_the_machine)
    assert usable_cores() == counted


def test_no_other_module_counts_cores() -> None:
    """Each of them would fail on macOS and Windows, or count cores that the process may not use."""
    counting = {
        file.relative_to(ROOT).as_posix()
        for room in ("fleet", "perfmodel", "planner", "scenarios", "benchmarks")
        for file in (ROOT / room).rglob("*.py")
        if "sched_getaffinity" in (text := file.read_text("utf-8")) or "cpu_count" in text
    }
    # The other one holds threads on cores of its own while it measures kernels.
    assert counting == {"fleet/machine.py", "perfmodel/microbench/device.py"}


def test_children_find_what_this_process_finds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "only_here.py").write_text("HELLO = 'found'", "utf-8")
    monkeypatch.setenv("KEPT", "as it was")
    monkeypatch.setattr(sys, "path", ["", *sys.path, str(tmp_path)])
    environment = child_environment(SWITCH="off")
    assert (environment["KEPT"], environment["SWITCH"]) == ("as it was", "off")
    assert "" not in environment["PYTHONPATH"].split(os.pathsep)
    asked = [sys.executable, "-c", "import only_here; print(only_here.HELLO)"]
    assert subprocess.run(asked, env=environment, capture_output=True, check=True).stdout == b"found\n"
