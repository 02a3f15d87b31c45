"""plan.json: the versioned document that a plan is, and that every other command reads."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fleetplan.fleet.input_files import read_text
from fleetplan.planner.plan.commitments import Commitment, RemainingValue, SupplyOption
from fleetplan.planner.plan.costs import (
    Cost,
    DemandScenarioCost,
    IncomeTaxCost,
    ScenarioPurchase,
    WrongForecast,
)
from fleetplan.planner.plan.inputs import PlanInputs
from fleetplan.planner.plan.provenance import PlanProvenance, Rejections, Solve
from fleetplan.planner.plan.record import Record
from fleetplan.planner.plan.rows import (
    Binding,
    KvFlow,
    OfflineWork,
    PhaseRatio,
    Placement,
    PoolUse,
    Purchase,
    Retired,
    SurvivingPlacement,
    Transition,
    Unmet,
)

FORMAT_VERSION: Final = "1.8"
"""Minor versions add fields; a reader ignores what it does not know."""

UNMET_ROUNDING_SHARE: Final = 1 / 55_440
"""Share of a demand that may be unmet for rounding alone: a load unit of a replica that serves all of it."""

UNMET_GAP_RATIO = 1e-5
"""Share of what is left unmet that may not be proven to be the least: HiGHS computes to a tenth of that."""


class StatedGoal(Record):
    """Value that a plan reaches of an objective before TCO."""

    objective: str
    """served, energy, carbon, accelerators or least-regret"""
    unit: str
    value: float
    """Recomputed without rounding. [unit]"""
    bound: float
    """No plan reaches more (served) or needs less (all others). [unit]"""
    gap: float
    """|bound - value| / the larger of the two; of a regret, over what the cheapest scenario costs at least"""
    model_value: float | None = None
    """By the rounded figures that the solver worked with; `value` is no worse, but for rounding. [unit]"""


class HomePreference(Record):
    """What was paid so that requests of services with a `home_percent` are served in their own region."""

    usd: float
    """Part of what the simpler plan costs more. [USD]"""
    away_requests_per_s: float
    """Requests that other regions serve, in the mean over all periods; prefill or decode alone counts half.
    [requests/s]"""
    away_requests_per_s_before: float
    """Of the cheapest plan found."""


class Simplification(Record):
    """What a plan that is simpler than the cheapest one found costs more, and how much simpler it is."""

    usd: float
    """More than the cheapest plan found, by the solver's rounded figures. [USD]"""
    hardware_kinds: int
    """Kinds of hardware of each service in each region, added up."""
    hardware_kinds_before: int
    """Of the cheapest plan found."""
    configurations: int
    """Configurations of each service and phase in each region, added up."""
    configurations_before: int
    """Of the cheapest plan found."""
    flows: int | None = None
    """Pairs of regions of which one serves requests of the other, of each service; None is not stated."""
    flows_before: int | None = None
    """Of the cheapest plan found."""
    home: HomePreference | None = None
    """Where a service may pay to be served at home (`services.home_percent`)."""


class UnmetGap(Record):
    """How sure it is that so much demand of a priority must stay unserved."""

    priority: int
    gap: float
    """Share of what is unmet of it, headroom included, that another plan might serve: one that leaves no
    more unmet of the priorities above. 0 where it is proven to be the least."""
    model_requests_per_s: float | None = None
    """What the solver's model leaves unmet of it, headroom included, in the mean over all moments.
    [requests/s]"""


class Plan(Record):
    """A plan with its cost, its bound and its explanation."""

    format_version: str = FORMAT_VERSION
    fleet: str
    periods: tuple[str, ...]
    """Those of the extension of the horizon included."""
    status: str
    """optimal, within_gap, limit or infeasible"""
    objective_usd: float
    """TCO over the horizon, recomputed without rounding. [USD]"""
    bound_usd: float
    """No plan costs less; of those that reach the goal as well, where there is one, and that leave no more
    unmet. [USD]"""
    gap: float
    """(objective - bound) / objective"""
    unmet: tuple[Unmet, ...]
    placements: tuple[Placement, ...]
    purchases: tuple[Purchase, ...]
    pools: tuple[PoolUse, ...]
    phase_ratios: tuple[PhaseRatio, ...]
    cost_breakdown: dict[str, float]
    """USD over the horizon by kind: depreciation, rent, hosting, maintenance, energy, transition."""
    usd_per_million_tokens: float | None
    """TCO over all input and output tokens at the peak rate; None where lengths are unknown."""
    binding: tuple[Binding, ...]
    retirements: tuple[Retired, ...] = ()
    costs: tuple[Cost, ...] = ()
    """By period, by service, by pool."""
    carbon_kg: float | None = None
    """Of the whole horizon; None where a grid intensity is missing. [kg CO2]"""
    rejections: tuple[Rejections, ...]
    provenance: PlanProvenance
    solve: Solve
    transitions: tuple[Transition, ...] = ()
    """What changes from period to period, and against the plan in force where one was given."""
    kv_flows: tuple[KvFlow, ...] = ()
    """Who hands over to whom, where not every prefill replica may pass to every decode replica of a service,
    or where links have a capacity."""
    demand_objective: str = "expected-cost"
    """What decides between demand scenarios: expected-cost or least-regret."""
    demand_scenarios: tuple[DemandScenarioCost, ...] = ()
    """Cost by demand scenario; empty where demand is certain."""
    wrong_forecasts: tuple[WrongForecast, ...] = ()
    """Cost of being wrong: the best purchases for each scenario where another one turns out."""
    scenario_purchases: tuple[ScenarioPurchase, ...] = ()
    """What the best plan for each demand scenario alone buys; empty where it was not looked for."""
    tides: tuple[Transition, ...] = ()
    """What changes from one slice of the day to the next, the last slice coming before the first."""
    offline_work: tuple[OfflineWork, ...] = ()
    """When the work of offline services arises, and when it is done."""
    region_losses: tuple[SurvivingPlacement, ...] = ()
    """What would serve the protected services without each region."""
    goal: StatedGoal | None = None
    """The objective that comes before TCO; None where TCO comes first."""
    inputs: PlanInputs | None = None
    """What the plan was made from, and its bill; None in a plan of format 1.0."""
    model_usd: float | None = None
    """TCO of the solver's solution by the rounded figures that it worked with. [USD]"""
    model_unused_usd: float | None = None
    """The part of it that the plan leaves out: load beyond the demand, replicas that stand idle; the rest is
    `objective_usd`. Never below 0; both but for rounding. [USD]"""
    simplification: Simplification | None = None
    """Where a simpler plan than the cheapest one was taken (`policy.simpler_percent`)."""
    commitments: tuple[Commitment, ...] = ()
    """What is owed beyond the horizon, by quarter."""
    remaining_values: tuple[RemainingValue, ...] = ()
    """What owned hosts are worth at its end."""
    supply_options: tuple[SupplyOption, ...] = ()
    """Buy, rent, keep or retire, by pool."""
    income_tax: IncomeTaxCost | None = None
    """After income tax; None where the fleet file states none (`finance.income_tax`)."""
    extension_periods: tuple[str, ...] = ()
    """The last periods: they repeat the last one that the fleet file states (`horizon.extend_quarters`)."""
    unmet_gaps: tuple[UnmetGap, ...] = ()
    """By priority, highest first, where demand may stay unmet and some does."""

    @property
    def stated_periods(self) -> tuple[str, ...]:
        """The periods that the fleet file states, without the extension."""
        return self.periods[: len(self.periods) - len(self.extension_periods)]

    @property
    def extension_usd(self) -> float:
        """The part of the TCO that falls into the extension of the horizon. [USD]"""
        added = set(self.extension_periods)
        return sum(row.usd for row in self.costs if row.scope == "period" and row.name in added)

    @property
    def open_gap(self) -> float:
        """The largest share by which another plan might be better: in cost, goal or unmet demand."""
        gaps = [self.gap, 0.0 if self.goal is None else self.goal.gap]
        return max(*gaps, *(each.gap for each in self.shortage_gaps if each.gap > UNMET_GAP_RATIO))

    @property
    def bound_scope(self) -> str:
        """Which plans the lower bound covers, to follow its figure; empty where it covers all."""
        return " among plans that serve as much" if self.unmet else ""

    @property
    def shortages(self) -> tuple[Unmet, ...]:
        """Unmet demand beyond rounding, for people to read.

        The model rounds demand up, rates down and loads to whole units: a share of `UNMET_ROUNDING_SHARE` may
        stay unmet though nothing is short.
        """
        demand: dict[tuple[object, ...], float] = {}
        for asked in () if self.inputs is None else self.inputs.demand:
            key = (
                asked.service,
                asked.region,
                asked.request_class,
                asked.period,
                asked.slice,
                asked.scenario,
            )
            demand[key] = asked.requests_per_s
        return tuple(
            row
            for row in self.unmet
            if row.requests_per_s
            > UNMET_ROUNDING_SHARE
            * demand.get((row.service, row.region, row.request_class, *row.moment_key), 0.0)
        )

    @property
    def shortage_gaps(self) -> tuple[UnmetGap, ...]:
        """How sure unmet demand is, of the priorities of which any is beyond rounding."""
        if self.inputs is None:
            return self.unmet_gaps
        priorities = {each.name: each.priority for each in self.inputs.services}
        short = {priorities.get(row.service) for row in self.shortages}
        return tuple(each for each in self.unmet_gaps if each.priority in short)

    @classmethod
    def read(cls, path: Path) -> Plan:
        """Read a plan file.

        Raises
        ------
        pydantic.ValidationError
            If it is not a plan.
        """
        return cls.model_validate_json(read_text(path))


Plan.model_rebuild()
