"""Read the plan that a question is about, with the fleet it was made for."""

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
class LoadedPlan:
    """A plan file with its fleet and its plan in force.

    Attributes
    ----------
    path : Path
        Path of the plan file.
    outcome : Plan or Infeasible
        Content of the plan file.
    fleet : Fleet
        Fleet read again, with every input unchanged since the plan was made.
    baseline : Plan or None
        The plan in force when this plan was made.
    """

    path: Path
    outcome: Plan | Infeasible
    fleet: Fleet
    baseline: Plan | None

    @property
    def plan(self) -> Plan:
        """The plan in the file.

        Raises
        ------
        InputError
            The file states that the fleet is infeasible.
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
    """Return the outcome with the name and hash of the plan in force in its provenance."""
    if path is None:
        return outcome
    stated = {"baseline_file": str(path), "baseline_sha256": input_sha256(path)}
    return outcome.model_copy(update={"provenance": outcome.provenance.model_copy(update=stated)})


def read_asked_plan(path: Path, fleet_file: Path | None = None) -> LoadedPlan:
    """Read a plan file and its fleet, and check that they belong together.

    Parameters
    ----------
    path : Path
        Path of plan.json.
    fleet_file : Path, optional
        Current path of the fleet file; the path in the plan by default.

    Raises
    ------
    InputError
        A file is missing, or an input has changed since the plan was made.
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
    return LoadedPlan(path, outcome, fleet, _baseline(path, provenance))


def require_current(asked: LoadedPlan, resolver: Resolver) -> LoadedPlan:
    """Check that the cost of a plan is comparable with new solves.

    Returns
    -------
    LoadedPlan
        The plan with a fleet that must serve all demand, as the plan does, regardless of the policy.
        Otherwise a plan with unmet demand would count as a cheaper answer.

    Raises
    ------
    InputError
        The plan fails verification with the rates of this version, leaves demand unserved, or does not
        minimise TCO.
    """
    plan = asked.plan
    if asked.fleet.objective != "tco":
        message = f"the plan is one for {asked.fleet.objective}, and the question is about its cost"
        raise _mistake(asked.path, "objective", message, "ask about a plan with the objective tco")
    if plan.shortages:
        hint = "plan explain without options lists the capacity that would serve it"
        raise _mistake(
            asked.path, "unmet", "the plan leaves demand unserved, so its cost is not comparable", hint
        )
    # No question works without candidates: the limit of a solve does not interrupt this, only Ctrl-C does.
    _, problem = resolver.problem(asked.fleet)
    broken = verify(problem, plan)
    if broken:
        message = f"the plan does not hold with the rates of this version: {broken[0].message}"
        raise _mistake(asked.path, "placements", message, PLAN_AGAIN)
    return replace(asked, fleet=replace(asked.fleet, policy=replace(asked.fleet.policy, unmet="forbid")))


def _changed_inputs(provenance: PlanProvenance, fleet: Fleet) -> list[tuple[str, str]]:
    """Return the changed inputs of a plan, each with the kind of change."""
    before, now = provenance.inputs_sha256, dict(fleet.input_hashes)
    changed = [(name, "has changed") for name in before if name in now and before[name] != now[name]]
    gone = [(name, "is no longer read") for name in before if name not in now]
    added = [(name, "is read in addition") for name in now if name not in before]
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
    """Return the path of a file named in a plan: as stated, or relative to the plan."""
    if not name:
        raise _mistake(plan, f"provenance.{key}", "the plan does not state the path of its fleet file", hint)
    for place in (Path(name), plan.parent / name):
        if is_file(place):
            return place
    raise _mistake(plan, f"provenance.{key}", f"there is no {name!r}", hint)


def _mistake(path: Path, key: str, message: str, hint: str) -> InputError:
    return InputError([Issue(str(path), 0, 0, key, message, hint)])
