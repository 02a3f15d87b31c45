"""Commands about a random plan: each must answer, or fail with a message."""

from __future__ import annotations

import contextlib
import io
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fleetplan.planner import cli
from fleetplan.planner.commands.export import FORMAT_NAMES
from fleetplan.planner.plan import Infeasible, Plan
from tests.fuzz.fleets import Made

FOUND, BAD_INPUT, INFEASIBLE, LIMIT, DIFFERENT = 0, 2, 3, 4, 5

TIME_LIMIT_S = "1"
SOLVES = ("--time-limit", TIME_LIMIT_S)

NO_COST = "its cost is not comparable|the question is about its cost"
"""Of plans that leave demand unserved, or are best at something else."""

NOTHING_TO_EXPORT = "cannot express any part of the plan"

NOTHING_TO_REPLAY = "has no request within"


@dataclass(frozen=True)
class CommandQuestion:
    """Arguments of `plan`, the exit codes of an answer, and what it says where it may refuse with a 2."""

    arguments: tuple[str, ...]
    codes: tuple[int, ...] = (FOUND,)
    refusal: str | None = None

    @property
    def command(self) -> str:
        """The command alone."""
        return self.arguments[0]

    def __str__(self) -> str:
        return f"plan {' '.join(self.arguments)}"


@dataclass(frozen=True)
class CommandAnswer:
    """Exit code and output of a command."""

    code: int
    out: str
    errors: str


def run(arguments: Sequence[str]) -> CommandAnswer:
    """Run the command line in this process; an exception that it does not catch is raised."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            cli.main(list(arguments))
            code: object = 0
        except SystemExit as ended:
            code = ended.code
    return CommandAnswer(code if isinstance(code, int) else 0, out.getvalue(), errors.getvalue())


def ask(question: CommandQuestion) -> str:
    """Ask; return what is wrong with the answer, or nothing."""
    answer = run(question.arguments)
    refused = answer.code == BAD_INPUT and question.refusal is not None
    if refused and re.search(question.refusal or "", answer.errors):
        return ""
    if answer.code not in question.codes:
        return f"exit code {answer.code}: {answer.errors.strip()[-400:]}"
    return "" if answer.out or answer.errors else "not a word"


def questions(
    made: Made, path: Path, outcome: Plan | Infeasible | None, dice: random.Random
) -> Iterator[CommandQuestion]:
    """Yield all questions about a fleet and its outcome, in random order.

    Parameters
    ----------
    made : Made
        The fleet.
    path : Path
        Its file.
    outcome : Plan or Infeasible or None
        What was found; it is written beside the file.
    dice : random.Random
        For the order, and for what is asked about.
    """
    found = list(_about_fleet(made, path))
    if outcome is not None:
        target = path.with_name("plan.json")
        target.write_text(outcome.model_dump_json(indent=2), encoding="utf-8")
        if isinstance(outcome, Plan):
            found += _about_plan(outcome, path, target, dice)
        else:
            found.append(CommandQuestion(("explain", str(target), *SOLVES), (FOUND, LIMIT)))
    dice.shuffle(found)
    yield from found


def _about_fleet(made: Made, path: Path) -> Iterator[CommandQuestion]:
    fleet, folder = str(path), path.parent
    solved = (FOUND, INFEASIBLE, LIMIT)
    yield CommandQuestion(("check", fleet))
    yield CommandQuestion(("dump", fleet, "--out", str(folder / "dump")))
    yield CommandQuestion(("solve", fleet, "--out", str(folder / "out"), *SOLVES), solved)
    yield CommandQuestion(("solve", fleet, "--json", "--explain-search", *SOLVES), solved)
    yield CommandQuestion(("compare", fleet, "--against", "homogeneous", *SOLVES), solved)
    yield CommandQuestion(("compare", fleet, "--against", "no-disaggregation", *SOLVES), solved)
    grid = ("--grid", "demand=0.8,1", "--grid", "price=1,2")
    yield CommandQuestion(("sweep", fleet, *grid, "--out", str(folder / "sweep"), *SOLVES), solved)
    for name in made.file.get("scenarios", {}):
        yield CommandQuestion(("solve", fleet, "-s", name, *SOLVES), solved)
    for service in made.file["services"]:
        if "model" in service:
            refusal = "compress prompts|no hardware with known figures"
            yield CommandQuestion(("landscape", fleet, "--service", service["name"]), refusal=refusal)


def _about_plan(plan: Plan, fleet: Path, target: Path, dice: random.Random) -> Iterator[CommandQuestion]:
    name, folder = str(target), target.parent
    yield CommandQuestion(("verify", name, str(fleet)))
    yield CommandQuestion(("report", name, "--out", str(folder / "report.html")))
    yield CommandQuestion(("diff", name, name, "--exit-code"))
    # Random fleet 908796: a rented pool that Google Cloud has, in a region of another name.
    named = [f"{region}=us-east4" for region in sorted({row.region for row in plan.pools})]
    located = [word for each in named for word in ("--location", each)]
    for form in FORMAT_NAMES:
        yield CommandQuestion(
            ("export", name, "--as", form, "--out", str(folder / form), *(located if form == "gke" else ())),
            refusal="cannot express any part of the plan",
        )
    replay = ("replay", name, str(fleet), "--duration", "1")
    yield CommandQuestion((*replay, "--out", str(folder / "replay")), refusal=NOTHING_TO_REPLAY)
    yield CommandQuestion((*replay, "--mmpp", "--load", "0.5"), refusal=NOTHING_TO_REPLAY)
    in_force = ("--baseline", name)
    yield CommandQuestion(("solve", str(fleet), *in_force, *SOLVES), (FOUND, INFEASIBLE, LIMIT))
    yield CommandQuestion(("explain", name, "--marginal", *SOLVES), refusal=NO_COST)
    used = sorted({row.service for row in plan.placements})
    parts = sorted({row.hardware for row in plan.pools})
    if used:
        yield CommandQuestion(("explain", name, "--service", dice.choice(used), *SOLVES), refusal=NO_COST)
    if parts:
        yield CommandQuestion(("explain", name, "--why-not", dice.choice(parts), *SOLVES), refusal=NO_COST)
    if plan.shortages:
        yield CommandQuestion(("explain", name, *SOLVES), (FOUND, LIMIT))
    yield CommandQuestion(("stress", name, *SOLVES), refusal=NO_COST)
    yield CommandQuestion(("alternatives", name, *SOLVES), refusal=NO_COST)
    figures = ("accelerators", "latency", "headroom") + (("energy", "carbon") if plan.carbon_kg else ())
    # A region where nothing runs need not say what its power emits until carbon is minimised.
    no_figure = f"{NO_COST}|no service has a latency limit|carbon counts it"
    yield CommandQuestion(("pareto", name, "--against", dice.choice(figures), *SOLVES), refusal=no_figure)
