"""`plan` as a process: output that cannot be written, terminals without UTF-8."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.parts import first_parts
from tests.warm import WarmProcess, ran

from fleetplan.fleet.errors import InputError
from fleetplan.planner.commands.memory import ALLOCATIONS
from fleetplan.planner.plan.read import read_outcome, read_plan

REPOSITORY = Path(__file__).parents[2]
FLEET = """\
version: 1
name: "{name}"
pools: [{{name: own, hardware: H100-SXM, hosts: 1, owned: {{capex_usd_per_host: 1000}}}}]
services: [{{name: chat, engines: rates.csv, slo: {{}}, demand: 5}}]
"""
ENGINES = "phase,hardware,accelerators_per_replica,config,requests_per_s\naggregated,H100-SXM,1,one,10\n"


def plan(
    arguments: Sequence[str],
    folder: Path,
    *,
    stdout: object = subprocess.PIPE,
    stderr: object = subprocess.PIPE,
    env: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    return WarmProcess(
        ["-m", "fleetplan.planner", *arguments],
        cwd=folder,
        stdout=stdout,
        stderr=stderr,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src"), **(env or {})},
    )


def write_fleet(folder: Path) -> None:
    """Write a fleet of one service with rates of its own, fleet.yaml."""
    (folder / "fleet.yaml").write_text(FLEET.format(name="zwölf €"), encoding="utf-8")
    (folder / "rates.csv").write_text(ENGINES, encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_fleet(tmp_path)
    return tmp_path


@pytest.mark.parametrize("arguments", [["check", "fleet.yaml"], ["schema"]])
def test_a_full_disk_behind_standard_output_is_said(folder: Path, arguments: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        process = plan(arguments, folder, stdout=full)
        said = process.communicate(timeout=100)[1].decode()
    assert process.returncode == 2
    assert said.endswith("standard output cannot be written: No space left on device\n")
    assert "Traceback" not in said


@pytest.mark.parametrize("arguments", [["check", "fleet.yaml"], ["schema"]])
def test_a_reader_that_left_ends_the_command_as_a_shell_expects(folder: Path, arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = plan(arguments, folder, stdout=writing)
    os.close(writing)
    said = process.communicate(timeout=100)[1].decode()
    assert process.returncode == 128 + signal.SIGPIPE
    assert "Traceback" not in said
    assert "Exception" not in said
    assert "written" not in said


def without_stream(
    number: int, arguments: Sequence[str], folder: Path, begins_anew: bool
) -> subprocess.CompletedProcess[bytes]:
    """Run `plan` without standard output (1) or standard error (2): none at all, or as Python leaves it."""
    if not begins_anew:
        name = {1: "stdout", 2: "stderr"}[number]
        program = f"""
import os, sys
os.close({number})
sys.{name} = sys.__{name}__ = None
sys.argv = ["plan", *{list(arguments)!r}]
from fleetplan.planner.start import main
main()
"""
        return ran(["-c", program], cwd=folder)
    command = " ".join([sys.executable, "-m", "fleetplan.planner", *arguments])
    return subprocess.run(
        ["sh", "-c", f"{command} {number}>&-"],
        cwd=folder,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
        check=False,
        timeout=100,
    )


PLANNING = ["fleet.yaml", "--out", "out"]


@pytest.mark.parametrize(
    ("arguments", "begins_anew"),
    first_parts(
        ((PLANNING, False), (["schema"], True), (PLANNING, True), (["check", "fleet.yaml"], True)), 1, more=1
    ),
)
def test_closed_standard_output_is_said(folder: Path, arguments: list[str], begins_anew: bool) -> None:
    done = without_stream(1, arguments, folder, begins_anew)
    said = done.stderr.decode()
    assert done.returncode == 2, said
    assert said.endswith("standard output cannot be written: Bad file descriptor\n")
    assert "Traceback" not in said
    if "--out" in arguments:
        assert json.loads((folder / "out" / "plan.json").read_text())["fleet"] == "zwölf €"


TELLING = ["fleet.yaml", "--json"]


@pytest.mark.parametrize(
    ("arguments", "begins_anew"), first_parts(((["schema"], True), (TELLING, False), (TELLING, True)), 2)
)
def test_closed_standard_error_loses_no_result(folder: Path, arguments: list[str], begins_anew: bool) -> None:
    done = without_stream(2, arguments, folder, begins_anew)
    assert done.returncode == 0
    told = json.loads(done.stdout)
    assert told.get("fleet") == "zwölf €" if "--json" in arguments else "$schema" in told


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("fleetplan.planner.start", {"typing", "re", "contextlib", "typer", "numpy", "pathlib"}),
        # What few fleets need, or none: they are imported where they are used.
        ("fleetplan.planner.questions.solve_outcome", {"scipy.special", "scipy.linalg", "matplotlib.figure"}),
    ],
    ids=["before signals are heard", "before a fleet is read"],
)
def test_little_is_imported(module: str, heavy: set[str]) -> None:
    # Without site-packages' own start files, which import what they like.
    script = f"import sys; sys.path += {sys.path!r}; import {module}; print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
        check=True,
    )
    assert heavy & set(done.stdout.split()) == set()


def told_after_start(expression: str, set_before: dict[str, str]) -> str:
    """Return the value of an expression after `plan` has started."""
    script = (
        "import gc, os, sys; from fleetplan.planner import start; sys.argv[1:] = ['--version']\n"
        f"try: start.main()\nexcept SystemExit: print({expression})"
    )
    others = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={**others, "PYTHONPATH": str(REPOSITORY / "src"), **set_before},
        check=True,
    )
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize(("set_before", "threads"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "3"}, "3")])
def test_matrices_take_one_thread_unless_the_user_says_otherwise_and_garbage_is_rarely_looked_for(
    set_before: dict[str, str], threads: str
) -> None:
    told = told_after_start("os.environ['OPENBLAS_NUM_THREADS'], *gc.get_threshold()", set_before)
    assert told == " ".join([threads, *map(str, ALLOCATIONS)])


def test_progress_that_cannot_be_written_loses_no_result(folder: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        process = plan(["fleet.yaml", "--json"], folder, stderr=full)
        out = process.communicate(timeout=100)[0]
    assert process.returncode == 0
    assert json.loads(out)["fleet"] == "zwölf €"


def test_a_terminal_without_utf8_gets_letters_that_it_has(folder: Path) -> None:
    encoding = "latin-1"
    process = plan(["fleet.yaml"], folder, env={"PYTHONIOENCODING": encoding})
    out, said = process.communicate(timeout=100)
    assert (process.returncode, b"Traceback" in said) == (0, False)
    assert out.decode(encoding).startswith("zwölf ?")
    process = plan(["fleet.yaml", "--json"], folder, env={"PYTHONIOENCODING": encoding})
    # JSON says the same everywhere.
    assert json.loads(process.communicate(timeout=100)[0].decode("ascii"))["fleet"] == "zwölf €"


def test_a_file_system_without_temporary_files_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read-only container gives a message, not a traceback."""
    monkeypatch.chdir(folder)
    program = """
import sys, tempfile
from fleetplan.planner import api
tempfile.tempdir = None
tempfile._candidate_tempdir_list = lambda: ["/proc/nowhere"]
api._searched = lambda *_: tempfile.gettempdir()
sys.argv = ["plan", "fleet.yaml"]
from fleetplan.planner.start import main
main()
"""
    done = ran(["-c", program], text=True)
    assert (done.returncode, done.stdout) == (2, "")
    said = "no folder accepts temporary files: make /tmp writable, or name one in TMPDIR\n"
    assert done.stderr.splitlines(keepends=True)[-1] == said
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", [r"a\u001b[31m", "a\\u009B", "a\x9b", r"a\\\r"])
def test_a_plan_with_names_that_steer_a_terminal_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(f'{{"fleet": "{name}"}}', encoding="utf-8")
    for read in (read_plan, read_outcome):
        with pytest.raises(InputError, match=r"is not a plan: the character \S+ is in one of its names"):
            read(path)
    path.write_text(r'{"fleet": "a\\u001b"}', encoding="utf-8")
    with pytest.raises(InputError, match="Field required"):
        read_plan(path)


def test_a_plan_with_a_name_that_no_file_system_takes_is_refused(tmp_path: Path) -> None:
    for read in (read_plan, read_outcome):
        with pytest.raises(InputError, match="cannot be read: File name too long"):
            read(tmp_path / ("9" * 300))


def test_names_of_files_and_options_steer_no_terminal(folder: Path) -> None:
    bad = "a\x1b[31m\x9b\x7f"
    (folder / f"{bad}.yaml").write_text("version: 1\nnaem: x\n", encoding="utf-8")
    for arguments in (["check", f"{bad}.yaml"], ["fleet.yaml", "--set", f"{bad}=3"]):
        process = plan(arguments, folder)
        out, said = process.communicate(timeout=100)
        assert process.returncode == 2
        assert r"a\x1b[31m\x9b\x7f" in said.decode()
        assert not set("\x1b\x9b\x7f") & set((out + said).decode())
