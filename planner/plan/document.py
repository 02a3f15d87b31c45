"""plan.json: the versioned document that a plan is, and that every other command reads."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from fleetplan.fleet.input_files import read_text
from fleetplan.planner.plan.inputs import PlanInputs

FORMAT_VERSION: Final = "1.2"
"""Minor versions add fields; a reader ignores what it does not know."""

UNMET_ROUNDING_SHARE: Final = 1 / 55_440
"""Share of a demand that may be unmet for rounding alone: a load unit of a replica that serves all of it."""

UNMET_GAP_RATIO = 1e-5
"""Share of what is left unmet that may not be proven to be the least: HiGHS computes to a tenth of that."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_inf_nan="null")


MomentKey = tuple[str, str | None, str | None]
"""Period, slice, demand scenario."""


class AtMoment(_Record):
    """A row of one period, part of the day and demand scenario."""

    period: str
    slice: str | None = None
    """Part of the day; None where it is the whole day."""
    scenario: str | None = None
    """Demand scenario; None where demand is certain."""

    @property
    def moment_key(self) -> MomentKey:
        """What tells the moments of rows apart."""
        return self.period, self.slice, self.scenario


RUNNING_KINDS: Final = ("energy", "transition", "tidal", "data")
"""What a placement costs besides its share of the pool, by kind: its fields `energy_usd` and so on."""


class Placement(AtMoment):
    """Replicas of one configuration of a service in one pool and moment."""

    region: str
    pool: str
    service: str
    phase: str
    """prefill, decode or aggregated"""
    hardware: str
    config: str
    replicas: int
    accelerators: int
    """Accelerators of all replicas."""
    requests_per_s: float
    """Traffic served, all classes; headroom not included. [requests/s]"""
    requests_per_s_by_class: dict[str, float]
    utilisation: float
    """Served load over what the replicas sustain on their own within the SLO, 0 to 1."""
    ttft_ms: float | None
    """Worst class; prefill and aggregated replicas alone."""
    tpot_ms: float | None
    """Worst class; decode and aggregated replicas alone."""
    usd: float
    """Part of the expected TCO: a share of the pool's cost by accelerators, and the energy, for the hours of
    the slice and by the probability of the scenario. [USD]"""
    energy_usd: float
    provenance: dict[str, float]
    """Share of the latency by how its numbers were obtained."""
    transition_usd: float = 0.0
    """Expected cost of the replicas that did not run in the period before; part of `usd`. [USD]"""
    tidal_usd: float = 0.0
    """Expected cost of those that did not run in the slice before, every day anew; part of `usd`. [USD]"""
    data_usd: float = 0.0
    """Expected cost of carrying the data of requests that come from other regions; part of `usd`. [USD]"""
    requests_per_s_by_origin: dict[str, dict[str, float]] = Field(default_factory=dict)
    """Traffic that comes from other regions, by region and class; part of `requests_per_s`. [requests/s]"""
    utilisation_limit: float = 1.0
    """Utilisation up to which a pool of so many replicas keeps the limits that hold under load, 0 to 1."""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Service, phase, hardware and configuration: the candidate that it runs."""
        return self.service, self.phase, self.hardware, self.config

    @property
    def running_usd(self) -> float:
        """What it costs besides its share of the pool. [USD]"""
        return self.energy_usd + self.transition_usd + self.tidal_usd + self.data_usd


class Purchase(_Record):
    """Units that an offer brings into a pool."""

    period: str
    """Order of a purchase, use of rented units."""
    offer: str
    region: str
    pool: str
    hardware: str
    kind: str
    """buy, rent, reserve (rent for a term) or spot"""
    units: int
    unit: str
    """host or accelerator"""
    accelerators: int
    capex_usd: float
    usd: float
    """Cost over the horizon. [USD]"""
    price_source: str
    price_as_of: str | None = None
    """Year, month or day of the price; None where the fleet file does not say."""


class Retired(_Record):
    """Owned hosts that leave a pool at the start of a period."""

    period: str
    pool: str
    region: str
    hardware: str
    hosts: int
    usd: float
    """What it changes over the horizon: costs saved, what the books still held, and the sale. [USD]"""
    resale_usd: float
    """What the sale brings, at its present value. [USD]"""


class PoolUse(AtMoment):
    """What a pool holds and runs in a moment."""

    pool: str
    region: str
    hardware: str
    accelerators: int
    reserve_accelerators: int
    used_accelerators: int
    utilisation: float
    """Used accelerators over those that may be used, 0 to 1."""
    usd: float
    """Depreciation, rent, hosting and maintenance of the whole pool, for the hours of the slice and by the
    probability of the scenario. [USD]"""
    idle_usd: float
    """The part that no placement carries. [USD]"""
    retirement_usd: float = 0.0
    """What hosts that leave at the start of the period cost besides: what the books still held, less their
    sale; negative where they sell for more. Part of the hours and the probability, as `usd` is. [USD]"""
    maintenance_accelerators: int = 0
    """Out of service."""


class Transition(AtMoment):
    """Replicas of one configuration in one pool that are more or fewer than in the period (slice) before."""

    region: str
    pool: str
    service: str
    phase: str
    hardware: str
    config: str
    replicas_before: int
    """In the period before, for the first period in the plan in force; or in the slice before."""
    replicas: int
    accelerators: int
    """Accelerators that start to run it; negative where they are freed."""
    usd: float
    """Expected cost of those that start. [USD]"""


class OfflineWork(AtMoment):
    """Work of an offline service that is done in a slice of the day."""

    arises_in: str | None = None
    """Slice in which its requests arise; None where the day is whole."""
    region: str
    service: str
    request_class: str
    requests_per_day: float


class SurvivingPlacement(AtMoment):
    """Replicas that serve a protected service after the loss of a region."""

    lost_region: str
    region: str
    pool: str
    service: str
    phase: str
    hardware: str
    config: str
    replicas: int
    requests_per_s_by_class: dict[str, float]
    """Traffic of all regions that they can serve; headroom not included. [requests/s]"""


class KvFlow(AtMoment):
    """Requests whose KV cache passes from prefill replicas to decode replicas."""

    service: str
    request_class: str
    origin: str
    """The region that the requests come from."""
    prefill_pool: str
    prefill_config: str
    decode_pool: str
    decode_config: str
    requests_per_s: float
    """Headroom not included. [requests/s]"""
    kv_gb_per_s: float | None = None
    """None where no link counts it. [GB/s]"""


class Unmet(AtMoment):
    """Demand that the plan leaves unserved."""

    region: str
    service: str
    request_class: str
    requests_per_s: float


class Cost(_Record):
    """What one period, service or pool costs and emits."""

    scope: str
    """period, service or pool"""
    name: str
    usd: float
    """Over the horizon, or over the period; a service pays for what it occupies. [USD]"""
    usd_by_kind: dict[str, float]
    """Of a service: capacity and energy."""
    idle_usd: float
    """The part of what stands that no service pays for. [USD]"""
    retirement_usd: float = 0.0
    """The part that is what hosts that leave cost at once, less their sale. [USD]"""
    million_tokens: float | None
    """Input tokens of prefill and output tokens of decode at the peak rate; None without lengths."""
    usd_per_million_tokens: float | None
    carbon_kg: float | None
    """Of the energy at the served utilisation; None where a grid intensity is missing. [kg CO2]"""


class DemandScenarioCost(_Record):
    """What a plan for uncertain demand costs where one scenario turns out."""

    name: str
    probability: float
    usd: float
    """TCO of the plan in this scenario. [USD]"""
    unmet_requests_per_s: float
    """What the plan leaves unserved in it, the mean over the horizon. [requests/s]"""
    best_usd: float | None = None
    """TCO of the best plan that was found for this scenario alone; None where it was not looked for. [USD]"""
    best_bound_usd: float | None = None
    """No plan for this scenario alone costs less. [USD]"""
    best_unmet_requests_per_s: float | None = None
    """What that plan leaves unserved. [requests/s]"""
    regret_usd: float | None = None
    """Extra cost over the best plan that was found for the scenario alone. [USD]"""
    regret_at_most_usd: float | None = None
    """Extra cost over the bound: no plan for the scenario alone saves more. [USD]"""


class WrongForecast(_Record):
    """What the best purchases for one demand scenario come to where another one turns out."""

    planned_for: str
    turns_out: str
    usd: float | None = None
    """TCO with placements decided anew; None where no plan was found. [USD]"""
    bound_usd: float | None = None
    """No placements cost less. [USD]"""
    unmet_requests_per_s: float | None = None
    """What then stays unserved, the mean over the horizon. [requests/s]"""
    extra_usd: float | None = None
    """Over the best plan that was found for the scenario that turns out. [USD]"""


class Binding(_Record):
    """A limit that the plan uses up."""

    family: str
    name: str
    used: float
    limit: float
    unit: str


class PhaseRatio(AtMoment):
    """Accelerators of prefill and decode of a disaggregated service."""

    region: str
    service: str
    prefill_accelerators: int
    decode_accelerators: int
    ratio: float
    """Prefill accelerators for each decode accelerator."""


class Rejections(_Record):
    """Why configurations of a service are not candidates."""

    service: str
    counts: dict[str, int]
    """By reason, over all hardware."""
    by_hardware: dict[str, dict[str, int]]


class TableSource(_Record):
    """One file of measured operator times."""

    package: str
    package_version: str
    system: str
    framework: str
    framework_version: str
    path: str
    """Within the package."""
    sha256: str


class CalibrationUse(_Record):
    """A calibration behind the rates."""

    hardware: str
    framework: str
    framework_version: str
    model: str
    weights: str
    kv: str
    prefill_ratio: float
    """Measured over predicted time of prompts."""
    decode_ratio: float
    """Measured over predicted time of generated tokens."""
    rows: int
    """Measurements that decided it."""
    error_before: float
    """Median error of predicting these measurements without it."""
    error_after: float
    """The same with it."""
    created: str
    path: str
    sha256: str
    measurements: str
    measurements_sha256: str


class ModelError(_Record):
    """How far predicted TPOT was from published measurements on one hardware."""

    hardware: str
    median_ratio: float | None
    """None where no measurement is published: nothing is known."""
    p90_ratio: float | None
    rows: int


class Provenance(_Record):
    """Where the plan's numbers come from."""

    fleetplan_version: str
    created: str
    inputs_sha256: dict[str, str]
    table_sources: tuple[TableSource, ...]
    price_sources: tuple[str, ...]
    versions: dict[str, str]
    seed: int
    time_limit_s: float
    gap_limit: float
    spend_share: dict[str, float]
    """Share of the placements' spend by how their rates were obtained."""
    warnings: tuple[str, ...] = ()
    model_errors: tuple[ModelError, ...] = ()
    """By hardware whose rates the performance model gave; docs/accuracy.md has the rest."""
    calibrations: tuple[CalibrationUse, ...] = ()
    """Calibrations that held for a service on some hardware; all other rates are uncalibrated."""
    fleet_file: str = ""
    """As it was named; what `plan explain` reads again."""
    scenarios: tuple[str, ...] = ()
    assignments: tuple[str, ...] = ()
    """What was laid on the file, in order: names of its scenarios, then `key.path=value`."""
    baseline_file: str = ""
    """The plan in force, as it was named; empty without one."""
    baseline_sha256: str = ""


class Solve(_Record):
    """How the plan was found."""

    wall_s: float
    deterministic_time: float
    status: str
    bound_source: str
    """Who proved the bound, or that there is no plan: `HiGHS`, `CP-SAT confirmed by HiGHS`, `CP-SAT confirmed
    without presolve`, `CP-SAT without presolve`, a part of the search over blocks (`pricing of blocks`), or
    `bounds of the variables`; of parts that share nothing each one, with `;` between."""


class Goal(_Record):
    """What a plan reaches of an objective that comes before TCO."""

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


class UnmetGap(_Record):
    """How sure it is that so much demand of a priority must stay unserved."""

    priority: int
    gap: float
    """Share of what is unmet of it, headroom included, that another plan might serve: one that leaves no
    more unmet of the priorities above. 0 where it is proven to be the least."""


class Plan(_Record):
    """A plan with its cost, its bound and its explanation."""

    format_version: str = FORMAT_VERSION
    fleet: str
    periods: tuple[str, ...]
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
    provenance: Provenance
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
    tides: tuple[Transition, ...] = ()
    """What changes from one slice of the day to the next, the last slice coming before the first."""
    offline_work: tuple[OfflineWork, ...] = ()
    """When the work of offline services arises, and when it is done."""
    region_losses: tuple[SurvivingPlacement, ...] = ()
    """What would serve the protected services without each region."""
    goal: Goal | None = None
    """The objective that comes before TCO; None where TCO comes first."""
    inputs: PlanInputs | None = None
    """What the plan was made from, and its bill; None in a plan of format 1.0."""
    model_usd: float | None = None
    """TCO of the solver's solution by the rounded figures that it worked with. [USD]"""
    model_unused_usd: float | None = None
    """The part of it that the plan leaves out: load beyond the demand, replicas that stand idle; the rest is
    `objective_usd`. Never below 0; both but for rounding. [USD]"""
    unmet_gaps: tuple[UnmetGap, ...] = ()
    """By priority, highest first, where demand may stay unmet and some does."""

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
        """What is unmet beyond rounding, for people to read.

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


class Shortage(AtMoment):
    """What an infeasible fleet lacks."""

    region: str
    service: str
    request_class: str
    unmet_requests_per_s: float
    demand_requests_per_s: float
    accelerators_short: dict[str, int] = Field(default_factory=dict)
    """Accelerators that would serve it, by hardware; empty where no configuration meets the SLO."""
    reason: str


class GivenWay(_Record):
    """How far one requirement gives way."""

    requirement: str
    change: str
    """What it becomes, with the amount."""
    least: bool
    """Whether any less was proven not to be enough, the others alike."""


class WayOut(_Record):
    """Requirements that give way together, after which there is a plan."""

    gives: tuple[GivenWay, ...]
    objective_usd: float
    """TCO of the plan that there is then. [USD]"""
    bound_usd: float
    """No such plan costs less. [USD]"""


class Conflict(_Record):
    """Why a fleet has no plan."""

    requirements: tuple[str, ...]
    """Together they have none."""
    minimal: bool
    """Whether without any one of them the others have one."""
    ways_out: tuple[WayOut, ...]
    """Each was solved; the cheapest plan first."""
    complete: bool
    """Whether the time was enough to look at everything."""


class Infeasible(_Record):
    """plan.json of a fleet that cannot be served."""

    format_version: str = FORMAT_VERSION
    fleet: str
    status: str = "infeasible"
    shortages: tuple[Shortage, ...]
    rejections: tuple[Rejections, ...]
    provenance: Provenance
    solve: Solve
    conflict: Conflict | None = None
    """None where the time was too short to find it."""
