"""What each question of a quarterly review takes: wall time, and processor time of all its processes.

    python benchmarks/questions.py build/questions scenarios/quarterly.yaml [FLEET.yaml ...]
        [--only check,pareto] [--limit 600]

Each command runs as a user runs it, with its defaults for gap and time limit. The first check finds a cache
without landscapes, but with operator tables that were imported and modules that were compiled, as after an
installation. A command that takes longer than the limit gets SIGTERM, at which it keeps its rows,
and is ended half a minute later. What commands print is kept in the folder. The load is that of the machine
before the command: where it is more than a tenth of the cores, wall times say what else ran there, and solves
that a time limit ends have done less. A table of all of them stands at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

KEPT_OUT: Final = ("homogeneous", "no-disaggregation", "without:L40S")
"""What the plan is compared with."""
NOT_USED: Final = "L40S"
"""Hardware of which it is asked why it is not used."""
GRID: Final = ("demand=0.8,1,1.25",)
GRACE_S: Final = 30.0
"""What a command has after SIGTERM to say what it has. [s]"""


@dataclass(frozen=True, slots=True)
class QuestionTimes:
    """What a question took.

    Attributes
    ----------
    fleet, question : str
        Which one of which.
    wall_s, core_s : float
        By the clock, and of processors. [s]
    load : float
        Of the machine, before it.
    end : str
        Its exit status, or that the limit ended it.
    """

    fleet: str
    question: str
    wall_s: float
    core_s: float
    load: float
    end: str


def questions(fleet: Path, out: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the command of each question; later ones need the plan of `solve`."""
    plan = out / "plan" / "plan.json"
    yield "check, first", ["check", str(fleet)]
    yield "check, second", ["check", str(fleet)]
    yield "solve", ["solve", str(fleet), "--out", str(out / "plan")]
    yield "report", ["report", str(plan)]
    yield "explain --service", ["explain", str(plan), "--service", first_service(plan)]
    yield "explain --why-not", ["explain", str(plan), "--why-not", NOT_USED]
    yield "explain --marginal", ["explain", str(plan), "--marginal"]
    yield "compare", ["compare", str(fleet), *(word for each in KEPT_OUT for word in ("--against", each))]
    yield "alternatives", ["alternatives", str(plan)]
    yield "sweep", ["sweep", str(fleet), *(f"--grid={axis}" for axis in GRID), "--out", str(out / "sweep")]
    yield "pareto, energy", ["pareto", str(plan), "--against", "energy"]
    yield "stress", ["stress", str(plan)]


def first_service(plan: Path) -> str:
    """Name a service that a plan places; nothing where there is no plan yet."""
    if not plan.exists():
        return ""
    return str(json.loads(plan.read_text(encoding="utf-8"))["placements"][0]["service"])


def measured(fleet: Path, out: Path, only: Sequence[str], limit_s: float) -> Iterator[QuestionTimes]:
    """Ask the questions of a fleet in turn, and yield what each took."""
    out.mkdir(parents=True, exist_ok=True)
    home = out.parent / "cache"
    environment = os.environ | {"XDG_CACHE_HOME": str(home), "PYTHONPYCACHEPREFIX": str(home / "modules")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    program = [sys.executable, "-m", "fleetplan.planner"]
    # Modules are compiled once after an installation, whatever is asked first.
    subprocess.run([*program, "check", str(fleet)], capture_output=True, env=environment, check=False)
    for name, arguments in questions(fleet, out):
        if only and not {name, name.split()[0].rstrip(","), name.split("--")[-1]} & set(only):
            continue
        if name == "check, first":
            for kept in ("landscapes", "candidates", "rates"):
                shutil.rmtree(home / "fleetplan" / kept, ignore_errors=True)
        if name == "sweep":
            shutil.rmtree(out / "sweep", ignore_errors=True)
        load, began_s, before = os.getloadavg()[0], time.monotonic(), os.times()
        shown = out / f"{name.replace(' ', '-').replace(',', '')}.txt"
        end = ended([*program, *arguments], shown, environment, limit_s)
        after = os.times()
        core_s = after.children_user + after.children_system - before.children_user - before.children_system
        yield QuestionTimes(fleet.stem, name, time.monotonic() - began_s, core_s, load, end)


def ended(command: Sequence[str], shown: Path, environment: dict[str, str], limit_s: float) -> str:
    """Run a command for so long at most, and return how it ended."""
    with shown.open("w") as printed:
        process = subprocess.Popen(
            command, stdout=printed, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )
        try:
            return f"exit {process.wait(limit_s)}"
        except subprocess.TimeoutExpired:
            # Programs that a shell runs in the background do not hear SIGINT.
            process.terminate()
        try:
            return f"stopped after {limit_s:g} s, exit {process.wait(GRACE_S)}"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return f"killed after {limit_s + GRACE_S:g} s"


def table(rows: Sequence[QuestionTimes]) -> Iterator[str]:
    """Yield the lines of a table in Markdown: a row for each question, wall and processor time by fleet."""
    fleets = list(dict.fromkeys(row.fleet for row in rows))
    yield f"| wall / core seconds | {' | '.join(fleets)} |"
    yield "|---" * (len(fleets) + 1) + "|"
    found = {(row.question, row.fleet): row for row in rows}
    for question in dict.fromkeys(row.question for row in rows):
        cells = [_cell(found.get((question, fleet))) for fleet in fleets]
        yield f"| {question} | {' | '.join(cells)} |"


def _cell(row: QuestionTimes | None) -> str:
    if row is None:
        return ""
    how = "" if row.end == "exit 0" else f" ({row.end})"
    return f"{row.wall_s:.1f} / {row.core_s:.1f}{how}"


def main() -> None:
    """Read the command line, and measure."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("out", type=Path)
    parser.add_argument("fleets", type=Path, nargs="+")
    parser.add_argument("--only", default="", help="names or first words of the questions, with commas")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for each question", metavar="S")
    asked = parser.parse_args()
    only = [word.strip() for word in asked.only.split(",") if word]
    rows: list[QuestionTimes] = []
    for fleet in asked.fleets:
        for row in measured(fleet, (asked.out / fleet.stem).resolve(), only, asked.limit):
            rows.append(row)
            times = f"{row.wall_s:7.1f} s wall {row.core_s:7.1f} s of a core"
            print(f"{row.fleet:<14}{row.question:<20}{times}  load {row.load:.1f}  {row.end}", flush=True)
    print("", *table(rows), sep="\n", flush=True)


if __name__ == "__main__":
    main()
