"""Review of a new plan for its approval: changed inputs, moves, risks and file hashes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fleetplan.fleet.document.text_tables import read_text_table
from fleetplan.fleet.figures import figure, money, shown_in
from fleetplan.fleet.input_files import input_sha256
from fleetplan.planner.plan import Plan, currency_of, most_at_once, read_plan
from fleetplan.planner.questions.diff import PlanDiff, QuantityChange, diff, same_figure
from fleetplan.planner.questions.stress import STRESS_COLUMNS

STRESS: Final = "Stress"
"""Prefix of the risks found by a stress test."""

SOFT_SOURCES: Final = ("extrapolated", "roofline")
"""Sources of operator times that are far from any measurement."""

SOFT_SHARE: Final = 0.2
"""Share of the spend on these sources from which it is a risk: one fifth is a purchase in its own right."""


@dataclass(frozen=True, slots=True)
class ChangedInput:
    """An input that differs between the plans.

    Attributes
    ----------
    subject : str
        Setting of the command, peak demand, service, price, power or objective.
    name : str
        Name within the subject.
    before, after : str or float or None
        Value in the old and in the new plan; None if a plan lacks the input.
    unit : str
        Unit; empty for text.
    """

    subject: str
    name: str
    before: str | float | None
    after: str | float | None
    unit: str = ""


@dataclass(frozen=True, slots=True)
class AcceleratorMove:
    """Accelerators of a service on one hardware in one region, at their maximum over the moments."""

    service: str
    hardware: str
    region: str
    accelerators: QuantityChange


@dataclass(frozen=True, slots=True)
class InputHash:
    """SHA-256 of an input in both plans; empty if a plan lacks it."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Review:
    """A new plan compared with the previous one.

    Attributes
    ----------
    old, new : Plan
        Both plans.
    sha256 : tuple[str, str]
        Hashes of both plan files.
    found : PlanDiff
        Differences by line, and of the cost.
    reasons : tuple[Reason, ...]
        Inputs that differ.
    moves : tuple[AcceleratorMove, ...]
        Changes in the hardware of services.
    risks : tuple[str, ...]
        Risks of the new plan.
    hashes : tuple[InputHash, ...]
        Hashes of every input.
    """

    old: Plan
    new: Plan
    sha256: tuple[str, str]
    found: PlanDiff
    reasons: tuple[ChangedInput, ...]
    moves: tuple[AcceleratorMove, ...]
    risks: tuple[str, ...]
    hashes: tuple[InputHash, ...]


def review(old_file: Path, new_file: Path, stress_file: Path | None = None) -> Review:
    """Return the review of the plans in two files.

    Parameters
    ----------
    old_file, new_file : Path
        Plan files.
    stress_file : Path, optional
        Table written by `plan stress --csv` for the new plan; it adds to the risks.

    Raises
    ------
    InputError
        A file is not a plan, or not a stress table of the new plan.
    """
    old, new = read_plan(old_file), read_plan(new_file)
    stress = [] if stress_file is None else list(_stress(stress_file, new))
    tested = [] if stress_file is None else [InputHash(stress_file.name, "", input_sha256(stress_file))]
    first, second = input_sha256(old_file), input_sha256(new_file)
    return Review(
        old=old,
        new=new,
        sha256=(first, second),
        found=diff(old, new),
        reasons=tuple(_reasons(old, new)),
        moves=tuple(_moves(old, new)),
        risks=(*stress, *_risks(new)),
        hashes=(*_hashes(old, new), *tested),
    )


def _reasons(old: Plan, new: Plan) -> Iterator[ChangedInput]:
    """Yield the inputs that differ between the plans."""
    before, after = _inputs(old), _inputs(new)
    for key in sorted({*before, *after}, key=lambda key: (_SUBJECTS.index(key[0]), key[1:])):
        one, other = before.get(key), after.get(key)
        same = (
            same_figure(QuantityChange(key[1], one, other))
            if isinstance(one, float) and isinstance(other, float)
            else one == other
        )
        if not same:
            yield ChangedInput(key[0], key[1], one, other, key[2])


_SUBJECTS: Final = ("setting", "peak demand", "service", "price", "power", "objective")
"""Kinds of inputs, in the order of the report."""


def _inputs(plan: Plan) -> dict[tuple[str, str, str], str | float]:
    """Return the inputs of a plan by subject, name and unit."""
    goal = "tco" if plan.goal is None else plan.goal.objective
    found: dict[tuple[str, str, str], str | float] = {("objective", "least", ""): goal}
    for name, values in (("scenario", plan.provenance.scenarios), ("--set", plan.provenance.assignments)):
        found["setting", name, ""] = ", ".join(values) or "none"
    if plan.inputs is None:
        return found
    rates: dict[tuple[str, str], dict[object, float]] = defaultdict(lambda: defaultdict(float))
    for row in plan.inputs.demand:
        moment = (row.period, row.slice, row.scenario)
        rates[row.service, row.region][moment] += row.requests_per_s
    for (service, region), by_moment in rates.items():
        found["peak demand", f"{service} in {region}", "requests/s"] = max(by_moment.values())
    for each in plan.inputs.services:
        models = ", ".join(f"{variant.model} {variant.weights}" for variant in each.variants)
        limits = ", ".join(each.load_limits)
        for name, value, unit in (
            ("TTFT limit", each.ttft_ms, "ms"),
            ("TPOT limit", each.tpot_ms, "ms"),
            ("headroom", each.headroom, ""),
            ("priority", float(each.priority), ""),
        ):
            if value is not None:
                found["service", f"{each.name}: {name}", unit] = value
        for what, text in (("models", models), ("limits under load", limits)):
            if text:
                found["service", f"{each.name}: {what}", ""] = text
    for price in plan.inputs.prices:
        found["price", price.name, price.unit] = price.value
    for region_input in plan.inputs.regions:
        if region_input.power_kw:
            found["power", region_input.name, "kW"] = max(region_input.power_kw.values())
    return found


def _moves(old: Plan, new: Plan) -> Iterator[AcceleratorMove]:
    """Yield the services that use more or fewer accelerators than before."""
    before, after = _held(old), _held(new)
    for key in sorted({*before, *after}):
        accelerators = QuantityChange("accelerators", before.get(key, 0), after.get(key, 0))
        if not same_figure(accelerators):
            yield AcceleratorMove(*key, accelerators)


def _held(plan: Plan) -> Mapping[tuple[str, str, str], int]:
    """Return accelerators by service, hardware and region, at their maximum over the moments."""
    return most_at_once(plan.placements, lambda row: (row.service, row.hardware, row.region))


def _risks(plan: Plan) -> Iterator[str]:
    """Yield the risks of a plan, one sentence each."""
    for row in plan.shortages:
        when = " ".join(part for part in row.moment_key if part)
        rate = figure(row.requests_per_s)
        yield f"{rate} requests/s of {row.service} in {row.region} stay unserved ({when})."
    if plan.status == "limit":
        yield f"The search reached its time limit: another plan may cost up to {plan.gap:.1%} less."
    soft = sum(plan.provenance.spend_share.get(name, 0.0) for name in SOFT_SOURCES)
    if soft >= SOFT_SHARE:
        yield f"{soft:.0%} of the spend is based on extrapolated or roofline operator times."
    for error in plan.provenance.model_errors:
        if error.median_ratio is None:
            yield f"{error.hardware}: no published measurement to compare the predictions with."
    for limit in plan.binding:
        used = f"{figure(limit.used, 5)} of {figure(limit.limit, 5)} {limit.unit}"
        yield f"{limit.name} ({limit.family}) is binding: {used}."
    owed = sum(each.usd for each in plan.commitments)
    if owed:
        with shown_in(currency_of(plan)):
            yield f"{money(owed)} is owed after {plan.periods[-1]}, independent of later decisions."
    yield from plan.provenance.warnings


def _stress(path: Path, plan: Plan) -> Iterator[str]:
    """Yield the findings of a stress test as sentences: unserved demand, and cases without effect."""
    table = read_text_table(path, STRESS_COLUMNS, STRESS_COLUMNS)
    services = tuple(dict.fromkeys(row.service for row in plan.placements))
    broken: dict[str, list[str]] = defaultdict(list)
    harmless: list[str] = []
    undecided: list[str] = []
    for row in table.rows:
        case = row.cells.get("case", "")
        service = row.name("service", "service", services)
        period = row.name("period", "period", plan.periods)
        unserved, asked = row.number("unserved_requests_per_s"), row.number("asked_requests_per_s")
        if service is None:
            (undecided if unserved is None else harmless).append(case)
        elif unserved is not None and asked is not None:
            place = f"{service} in {row.cells.get('region', '')} {period}"
            broken[case].append(f"{figure(unserved)} of {figure(asked)} requests/s of {place}")
    table.require_valid()
    for case, lines in broken.items():
        yield f"{STRESS}, {case}: unserved on the plan's hardware are {'; '.join(lines)}."
    if undecided:
        yield f"{STRESS}: the time was too short to decide {', '.join(undecided)}."
    if harmless:
        yield f"{STRESS}: everything is served on the plan's hardware with {', '.join(harmless)}."


def _hashes(old: Plan, new: Plan) -> Iterator[InputHash]:
    """Yield the hashes of the inputs of both plans by name, including the plans in force."""
    before, after = ({**each.provenance.inputs_sha256} for each in (old, new))
    for each, hashes in ((old, before), (new, after)):
        if each.provenance.baseline_sha256:
            hashes["plan in force"] = each.provenance.baseline_sha256
    for name in sorted({*before, *after}):
        yield InputHash(name, before.get(name, ""), after.get(name, ""))
