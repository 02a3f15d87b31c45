"""A plan that a question is about, with the fleet that it was made for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.input_files import input_sha256, is_file
from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.plan import Infeasible, Plan, PlanProvenance, read_outcome, read_plan
from fleetplan.planner.questions.resolving import Resolver
from fleetplan.planner.verify import verify
from fleetplan.scenarios.load import load_fleet

PLAN_AGAIN = "plan the fleet again and ask about that plan"


@dataclass(frozen=True, slots=True)
class AskedPlan:
    """A plan file and what it was made from.

    Attributes
    ----------
    path : Path
        The plan file.
    outcome : Plan or Infeasible
        What it holds.
    fleet : Fleet
        Read again; every input has the contents that the plan was made from.
    baseline : Plan or None
        The plan in force that it was counted against.
    """

    path: Path
    outcome: Plan | Infeasible
    fleet: Fleet
    baseline: Plan | None

    @property
    def plan(self) -> Plan:
        """The plan.

        Raises
        ------
        InputError
            If the file says that there is none.
        """
        if isinstance(self.outcome, Infeasible):
            hint = "plan explain without options says which requirements are in conflict"
            raise _mistake(
                self.path,
                "status",
                "the fleet is infeasible, so there is no plan to ask about",
                hint,
            )
        return self.outcome


def with_baseline_file(outcome: Plan | Infeasible, path: Path | None) -> Plan | Infeasible:
    """The outcome with the name and hash of the plan in force in its provenance."""
    if path is None:
        return outcome
    stated = {"baseline_file": str(path), "baseline_sha256": input_sha256(path)}
    return outcome.model_copy(update={"provenance": outcome.provenance.model_copy(update=stated)})


def read_asked_plan(path: Path, fleet_file: Path | None = None) -> AskedPlan:
    """Read a plan file and its fleet, and make sure that they belong together.

    Parameters
    ----------
    path : Path
        plan.json.
    fleet_file : Path, optional
        Where the fleet file is now; by default where the plan says.

    Raises
    ------
    InputError
        If a file is missing, or an input is not what the plan was made from.
    """
    outcome = read_outcome(path)
    provenance = outcome.provenance
    fleet = load_fleet(
        fleet_file or _stated_file(path, provenance.fleet_file, "fleet_file", "--fleet FLEET.yaml names it"),
        provenance.scenarios,
        provenance.assignments,
    )
    issues = [
        Issue(str(path), 0, 0, f"provenance.inputs_sha256.{name}", f"{name} {what} since", PLAN_AGAIN)
        for name, what in _changed_inputs(provenance, fleet)
    ]
    if issues:
        raise InputError(issues)
    return AskedPlan(path, outcome, fleet, _baseline(path, provenance))


def require_current(asked: AskedPlan, resolver: Resolver) -> AskedPlan:
    """Make sure that what a plan costs can be held against new solves.

    Returns
    -------
    AskedPlan
        With a fleet of which all demand must be served, as the plan does, whatever the policy says: a plan
        that leaves some of it is no cheaper answer.

    Raises
    ------
    InputError
        If the plan does not hold with the rates of this program, leaves demand unserved, or was not made
        for the least TCO.
    """
    plan = asked.plan
    if asked.fleet.objective != "tco":
        message = f"the plan is one for {asked.fleet.objective}, and the question is about its cost"
        raise _mistake(asked.path, "objective", message, "ask about a plan with the objective tco")
    if plan.shortages:
        hint = "plan explain without options says what would serve it"
        raise _mistake(asked.path, "unmet", "the plan leaves demand unserved, so its cost says little", hint)
    # No solve and no answer without its candidates: the limit of a solve does not end this, Ctrl-C does.
    _, problem = resolver.problem(asked.fleet)
    broken = verify(problem, plan)
    if broken:
        message = f"the plan does not hold with the rates of this version: {broken[0].message}"
        raise _mistake(asked.path, "placements", message, PLAN_AGAIN)
    return replace(asked, fleet=replace(asked.fleet, policy=replace(asked.fleet.policy, unmet="forbid")))


def _changed_inputs(provenance: PlanProvenance, fleet: Fleet) -> list[tuple[str, str]]:
    """Inputs of a plan that are not what they were, each with what became of it."""
    before, now = provenance.inputs_sha256, dict(fleet.input_hashes)
    changed = [(name, "has changed") for name in before if name in now and before[name] != now[name]]
    gone = [(name, "is not read any more") for name in before if name not in now]
    added = [(name, "is read as well") for name in now if name not in before]
    return changed + gone + added


def _baseline(path: Path, provenance: PlanProvenance) -> Plan | None:
    if not provenance.baseline_file:
        return None
    place = _stated_file(path, provenance.baseline_file, "baseline_file", PLAN_AGAIN)
    if input_sha256(place) != provenance.baseline_sha256:
        message = f"{place} has changed since"
        raise _mistake(path, "provenance.baseline_sha256", message, PLAN_AGAIN)
    return read_plan(place)


def _stated_file(plan: Path, name: str, key: str, hint: str) -> Path:
    """A file that a plan names: as it stands, or beside the plan."""
    if not name:
        raise _mistake(plan, f"provenance.{key}", "the plan does not say where its fleet is", hint)
    for place in (Path(name), plan.parent / name):
        if is_file(place):
            return place
    raise _mistake(plan, f"provenance.{key}", f"there is no {name!r}", hint)


def _mistake(path: Path, key: str, message: str, hint: str) -> InputError:
    return InputError([Issue(str(path), 0, 0, key, message, hint)])
