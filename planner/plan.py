"""plan.json: the versioned document that a plan is, and that every other command reads."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

FORMAT_VERSION: Final = "1.0"
"""Minor versions add fields; a reader ignores what it does not know."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_inf_nan="null")


class Placement(_Record):
    """Replicas of one configuration of a service in one pool and period."""

    period: str
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
    """Served load over what the replicas sustain within the SLO, 0 to 1."""
    ttft_ms: float | None
    """Worst class; prefill and aggregated replicas alone."""
    tpot_ms: float | None
    """Worst class; decode and aggregated replicas alone."""
    usd: float
    """Share of the pool's cost by accelerators, and the energy, over the period. [USD]"""
    energy_usd: float
    provenance: dict[str, float]
    """Share of the latency by how its numbers were obtained."""
    transition_usd: float = 0.0
    """Cost of the replicas that start in the period; part of `usd`. [USD]"""


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


class PoolUse(_Record):
    """What a pool holds and runs in a period."""

    period: str
    pool: str
    region: str
    hardware: str
    accelerators: int
    reserve_accelerators: int
    used_accelerators: int
    utilisation: float
    """Used accelerators over those that may be used, 0 to 1."""
    usd: float
    """Depreciation, rent, hosting and maintenance of the whole pool. [USD]"""
    idle_usd: float
    """The part that no placement carries. [USD]"""
    maintenance_accelerators: int = 0
    """Out of service."""


class Transition(_Record):
    """Replicas of one configuration in one pool that are more or fewer than in the period before."""

    period: str
    region: str
    pool: str
    service: str
    phase: str
    hardware: str
    config: str
    replicas_before: int
    """In the period before; for the first period in the plan in force."""
    replicas: int
    accelerators: int
    """Accelerators that start to run it; negative where they are freed."""
    usd: float
    """Cost of those that start. [USD]"""


class SurvivingPlacement(_Record):
    """Replicas that serve a protected service after the loss of a region."""

    lost_region: str
    period: str
    region: str
    pool: str
    service: str
    phase: str
    hardware: str
    config: str
    replicas: int
    requests_per_s_by_class: dict[str, float]
    """Traffic of all regions that they can serve; headroom not included. [requests/s]"""


class Unmet(_Record):
    """Demand that the plan leaves unserved."""

    period: str
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
    """The part that no service pays for. [USD]"""
    million_tokens: float | None
    """Input tokens of prefill and output tokens of decode at the peak rate; None without lengths."""
    usd_per_million_tokens: float | None
    carbon_kg: float | None
    """Of the energy at the served utilisation; None where a grid intensity is missing. [kg CO2]"""


class Binding(_Record):
    """A limit that the plan uses up."""

    family: str
    name: str
    used: float
    limit: float
    unit: str


class PhaseRatio(_Record):
    """Accelerators of prefill and decode of a disaggregated service."""

    period: str
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


class Solve(_Record):
    """How the plan was found."""

    wall_s: float
    deterministic_time: float
    status: str
    bound_source: str


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
    """No plan costs less. [USD]"""
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
    region_losses: tuple[SurvivingPlacement, ...] = ()
    """What would serve the protected services without each region."""
    model_usd: float | None = None
    """TCO by the rounded figures that the solver worked with; never below `objective_usd` by more than
    rounding. [USD]"""

    @classmethod
    def read(cls, path: Path) -> Plan:
        """Read a plan file.

        Raises
        ------
        pydantic.ValidationError
            If it is not a plan.
        """
        return cls.model_validate_json(path.read_text(encoding="utf-8"))


class Shortage(_Record):
    """What an infeasible fleet lacks."""

    period: str
    region: str
    service: str
    request_class: str
    unmet_requests_per_s: float
    demand_requests_per_s: float
    accelerators_short: dict[str, int] = Field(default_factory=dict)
    """Accelerators that would serve it, by hardware; empty where no configuration meets the SLO."""
    reason: str


class Infeasible(_Record):
    """plan.json of a fleet that cannot be served."""

    format_version: str = FORMAT_VERSION
    fleet: str
    status: str = "infeasible"
    shortages: tuple[Shortage, ...]
    rejections: tuple[Rejections, ...]
    provenance: Provenance
    solve: Solve
