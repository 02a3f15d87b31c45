"""plan.json: the versioned plan document that every other command reads."""

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

FORMAT_VERSION: Final = "1.9"
"""Format version. Minor versions add fields; a reader ignores unknown ones."""

UNMET_ROUNDING_SHARE: Final = 1 / 55_440
"""Share of a demand that may be unmet through rounding: a load unit of a replica that serves all of it."""

UNMET_GAP_RATIO = 1e-5
"""Tolerance on the proof that unmet demand is minimal, ten times the precision of HiGHS. [share]"""


class StatedGoal(Record):
    """Value of the plan's objective that precedes TCO."""

    objective: str
    """served, energy, carbon, accelerators or least-regret"""
    unit: str
    value: float
    """Recomputed without rounding. [unit]"""
    bound: float
    """No plan reaches more (served) or needs less (all others). [unit]"""
    gap: float
    """Distance of bound and value over the larger of the two; for a regret, over the lower bound of the
    cheapest scenario
    """
    model_value: float | None = None
    """Value by the solver's rounded figures; `value` is at least as good, except for rounding. [unit]"""


class HomePreference(Record):
    """Price of serving requests in their own region, for services with a `home_percent`."""

    usd: float
    """Part of the extra cost of the simpler plan. [USD]"""
    away_requests_per_s: float
    """Rate served by other regions, averaged over all periods; only prefill or only decode counts half.
    [requests/s]
    """
    away_requests_per_s_before: float
    """The same for the cheapest plan found."""


class Simplification(Record):
    """Comparison of a simplified plan with the cheapest plan found."""

    usd: float
    """Extra cost over the cheapest plan found, by the solver's rounded figures. [USD]"""
    hardware_kinds: int
    """Kinds of hardware per service and region, summed."""
    hardware_kinds_before: int
    """The same for the cheapest plan found."""
    configurations: int
    """Configurations per service, phase and region, summed."""
    configurations_before: int
    """The same for the cheapest plan found."""
    flows: int | None = None
    """Pairs of regions of which one serves requests of the other, summed over services; None if not stated.
    """
    flows_before: int | None = None
    """The same for the cheapest plan found."""
    home: HomePreference | None = None
    """For services that may pay to be served at home (`services.home_percent`)."""


class UnmetGap(Record):
    """Proof of the unmet demand of a priority."""

    priority: int
    gap: float
    """Share of its unmet demand, including headroom, that another plan might serve without leaving more unmet
    in higher priorities. 0 if proven minimal.
    """
    model_requests_per_s: float | None = None
    """Its unmet demand in the solver's model, including headroom, averaged over all moments. [requests/s]"""


class Plan(Record):
    """A plan with its cost, its bound and its explanation."""

    format_version: str = FORMAT_VERSION
    fleet: str
    periods: tuple[str, ...]
    """Periods, including those of the extension of the horizon."""
    status: str
    """optimal, within_gap, limit or infeasible"""
    objective_usd: float
    """TCO over the horizon, recomputed without rounding. [USD]"""
    bound_usd: float
    """Lower bound on the cost of any plan; with a goal or unmet demand, of plans that reach the goal and
    leave no more unmet. [USD]
    """
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
    """Costs by period, by service and by pool."""
    carbon_kg: float | None = None
    """Carbon over the whole horizon; None if a grid intensity is missing. [kg CO2]"""
    rejections: tuple[Rejections, ...]
    provenance: PlanProvenance
    solve: Solve
    transitions: tuple[Transition, ...] = ()
    """Changes between periods, and against the plan in force if there is one."""
    kv_flows: tuple[KvFlow, ...] = ()
    """Transfers between prefill and decode replicas, if not every pair is allowed or if links have a
    capacity.
    """
    demand_objective: str = "expected-cost"
    """Objective over demand scenarios: expected-cost or least-regret."""
    demand_scenarios: tuple[DemandScenarioCost, ...] = ()
    """Cost by demand scenario; empty if demand is certain."""
    wrong_forecasts: tuple[WrongForecast, ...] = ()
    """Cost of a wrong forecast: the best purchases for one scenario if another one occurs."""
    scenario_purchases: tuple[ScenarioPurchase, ...] = ()
    """Purchases of the best plan for each demand scenario alone; empty if not computed."""
    tides: tuple[Transition, ...] = ()
    """Changes between slices of the day; the last slice precedes the first."""
    offline_work: tuple[OfflineWork, ...] = ()
    """Slices in which the work of offline services arises and is done."""
    region_losses: tuple[SurvivingPlacement, ...] = ()
    """Placements that serve the protected services without each region."""
    goal: StatedGoal | None = None
    """Objective that precedes TCO; None if TCO is the first objective."""
    inputs: PlanInputs | None = None
    """Inputs of the plan and its bill; None in a plan of format 1.0."""
    model_usd: float | None = None
    """TCO of the solver's solution by its rounded figures. [USD]"""
    model_unused_usd: float | None = None
    """The part of it that the plan drops: load beyond the demand, and idle replicas. The rest is
    `objective_usd`. Never below 0; both are exact except for rounding. [USD]
    """
    simplification: Simplification | None = None
    """Price of a plan simpler than the cheapest one (`policy.simpler_percent`)."""
    commitments: tuple[Commitment, ...] = ()
    """Amounts owed after the horizon, by quarter."""
    remaining_values: tuple[RemainingValue, ...] = ()
    """Book value of owned hosts at the end of the horizon."""
    supply_options: tuple[SupplyOption, ...] = ()
    """Supply options (buy, rent, keep, retire) by pool."""
    income_tax: IncomeTaxCost | None = None
    """Cost after income tax; None if the fleet file states no tax (`finance.income_tax`)."""
    extension_periods: tuple[str, ...] = ()
    """Last periods, which repeat the last one in the fleet file (`horizon.extend_quarters`)."""
    unmet_gaps: tuple[UnmetGap, ...] = ()
    """Gaps by priority, highest first, if demand may stay unmet and some does."""

    @property
    def stated_periods(self) -> tuple[str, ...]:
        """Periods of the fleet file, without the extension."""
        return self.periods[: len(self.periods) - len(self.extension_periods)]

    @property
    def extension_usd(self) -> float:
        """Part of the TCO in the extension of the horizon. [USD]"""
        added = set(self.extension_periods)
        return sum(row.usd for row in self.costs if row.scope == "period" and row.name in added)

    @property
    def open_gap(self) -> float:
        """Largest share by which another plan might be better: in cost, goal or unmet demand."""
        gaps = [self.gap, 0.0 if self.goal is None else self.goal.gap]
        return max(*gaps, *(each.gap for each in self.shortage_gaps if each.gap > UNMET_GAP_RATIO))

    @property
    def bound_scope(self) -> str:
        """Restriction on the plans that the lower bound covers, as a suffix of its figure; empty if none."""
        return " among plans that serve as much" if self.unmet else ""

    @property
    def shortages(self) -> tuple[Unmet, ...]:
        """Unmet demand beyond rounding, for display.

        The model rounds demand up, rates down and loads to whole units: a share of `UNMET_ROUNDING_SHARE` may
        stay unmet without a shortage.
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
        """Gaps of the priorities with unmet demand beyond rounding."""
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
            The file is not a plan.
        """
        return cls.model_validate_json(read_text(path))


Plan.model_rebuild()
