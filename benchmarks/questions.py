"""What each question of a quarterly review takes: wall time, and processor time of all its processes.

    python benchmarks/questions.py build/questions scenarios/quarterly.yaml [FLEET.yaml ...] [--only pareto]

Each command runs as a user runs it, with its defaults for gap and time limit. The first check finds a cache
without landscapes, but with operator tables that were imported. What commands print is kept in the folder.
The load is that of the machine before the command: where it is more than a tenth of the cores, wall times say
what else ran there, and solves that a time limit ends have done less.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

KEPT_OUT: Final = ("homogeneous", "no-disaggregation", "without:L40S")
"""What the plan is compared with."""
GRID: Final = ("demand=0.8,1,1.25",)


def questions(fleet: Path, out: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the command of each question; later ones need the plan of `solve`."""
    plan = str(out / "plan" / "plan.json")
    yield "check, first", ["check", str(fleet)]
    yield "check, second", ["check", str(fleet)]
    yield "solve", ["solve", str(fleet), "--out", str(out / "plan")]
    yield "report", ["report", plan]
    yield "explain --service", ["explain", plan, "--service", "voice"]
    yield "explain --why-not", ["explain", plan, "--why-not", "L40S"]
    yield "explain --marginal", ["explain", plan, "--marginal"]
    yield "compare", ["compare", str(fleet), *(word for each in KEPT_OUT for word in ("--against", each))]
    yield "alternatives", ["alternatives", plan]
    yield "sweep", ["sweep", str(fleet), *(f"--grid={axis}" for axis in GRID), "--out", str(out / "sweep")]
    yield "pareto", ["pareto", plan, "--against", "energy"]
    yield "stress", ["stress", plan]


def measured(fleet: Path, out: Path, only: Sequence[str]) -> None:
    """Ask the questions of a fleet in turn, and print what each took."""
    out.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"XDG_CACHE_HOME": str(out.parent / "cache")}
    for name, arguments in questions(fleet, out):
        if only and name.split()[0].rstrip(",") not in only:
            continue
        if name == "check, first":
            for kept in ("landscapes", "candidates", "rates"):
                shutil.rmtree(out.parent / "cache" / "fleetplan" / kept, ignore_errors=True)
        if name == "sweep":
            shutil.rmtree(out / "sweep", ignore_errors=True)
        load = os.getloadavg()[0]
        began_s, before = time.monotonic(), os.times()
        with (out / f"{name.replace(' ', '-').replace(',', '')}.txt").open("w") as shown:
            command = [sys.executable, "-m", "fleetplan.planner", *arguments]
            done = subprocess.run(
                command, stdout=shown, stderr=subprocess.STDOUT, env=environment, check=False
            )
        after = os.times()
        core_s = after.children_user + after.children_system - before.children_user - before.children_system
        times = f"{time.monotonic() - began_s:7.1f} s wall {core_s:7.1f} s of a core"
        print(f"{fleet.stem:<14}{name:<20}{times}  load {load:.1f}  exit {done.returncode}", flush=True)


def main() -> None:
    """Read the command line, and measure."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("out", type=Path)
    parser.add_argument("fleets", type=Path, nargs="+")
    parser.add_argument("--only", default="", help="first words of the questions to ask, with commas")
    asked = parser.parse_args()
    for fleet in asked.fleets:
        measured(fleet, asked.out / fleet.stem, [word for word in asked.only.split(",") if word])


if __name__ == "__main__":
    main()
