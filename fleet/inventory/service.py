"""Services with their demand, latency targets and techniques."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fleetplan.fleet.inventory.demand import Demand, Offline
from fleetplan.fleet.inventory.techniques import ModelVariant, Techniques
from fleetplan.fleet.inventory.traffic import LatencyLimit, Traffic

if TYPE_CHECKING:  # importing pandas takes longer than all of this room; `plan --help` must not pay for it
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Precision:
    """Data types of a service's weights and KV cache.

    Attributes
    ----------
    weights : str
        bf16, fp8, fp8-ffn (feed-forward weights FP8, the rest BF16), int8, int4, fp4 or mxfp4.
    kv : str
        bf16 or fp8.
    """

    weights: str
    kv: str


@dataclass(frozen=True, slots=True)
class LayoutSearch:
    """Search limits of a service; None or empty follows from model and hardware.

    Attributes
    ----------
    any_layout : bool
        Whether to search layouts that the service's framework cannot run.
    max_accelerators : int or None
        Largest replica. [accelerators]
    pipeline_stages, context_ranks : tuple[int, ...]
        Degrees to search.
    """

    any_layout: bool = False
    max_accelerators: int | None = None
    pipeline_stages: tuple[int, ...] = ()
    context_ranks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RequestClass:
    """A request class of a service.

    Attributes
    ----------
    name : str
        Name in the fleet file; `all` if the service has no classes.
    share : float
        Its share of the service's requests over the whole horizon, 0 to 1.
    input_tokens, output_tokens : int or None
        Mean new prompt tokens and generated tokens of a request. None only for a service with an
        engine table that states no workload.
    context_tokens : int or None
        Prompt tokens including cached ones; None if nothing is cached.
    """

    name: str
    share: float
    input_tokens: int | None
    output_tokens: int | None
    context_tokens: int | None


@dataclass(frozen=True, slots=True)
class OutsideLatency:
    """Mean time of a request outside inference. [ms].

    Attributes
    ----------
    network_ms, load_balancing_ms, media_download_ms, safety_ms : float
        Round trip; routing and admission; fetching media; checks that are not planned as a service. [ms]
    front_end_ms : float or None
        The server before the engine, which the performance model adds to TTFT; None is the framework's
        measured time. [ms]
    """

    network_ms: float = 0.0
    load_balancing_ms: float = 0.0
    media_download_ms: float = 0.0
    safety_ms: float = 0.0
    front_end_ms: float | None = None

    @property
    def total_ms(self) -> float:
        """All of it except the front end. [ms]."""
        return self.network_ms + self.load_balancing_ms + self.media_download_ms + self.safety_ms


@dataclass(frozen=True, slots=True)
class FollowedServices:
    """Services that a service follows.

    Attributes
    ----------
    services : tuple[str, ...]
        Services whose requests cause requests of this one.
    ttft_share : float or None
        Share of the TTFT limit of the followed service; None if it has its own limit or none.
    """

    services: tuple[str, ...]
    ttft_share: float | None = None

    @property
    def names(self) -> str:
        """Names of the services, as text."""
        return ", ".join(self.services)


@dataclass(frozen=True, slots=True)
class Service:
    """A service with its latency limits and its demand. Exactly one of `model` and `engines` is set.

    Attributes
    ----------
    name : str
        The name in the fleet file.
    model : str or None
        An id of the model catalogue, or the path of a `config.json` relative to the fleet file.
    engines : pandas.DataFrame or None
        The user's engine table; columns of the table `engines` in `fleetplan.fleet.tables`.
    precision : Precision
        Data types of weights and KV cache.
    classes : tuple[RequestClass, ...]
        Request classes, at least one.
    ttft_ms, tpot_ms : float or None
        Smallest limits on TTFT and TPOT, on means or percentiles: no configuration may exceed them without
        load. None is no limit. [ms]
    demand : Demand
        Demand of every slice and scenario by (region, period, class), with all combinations.
    headroom : float
        Planned capacity above demand, as a share of it.
    priority : int
        Priority; 1 is served first.
    runtimes : tuple[str, ...]
        Allowed runtimes: disaggregated, aggregated.
    framework : str
        Framework of the measured operator tables: trtllm, sglang or vllm.
    framework_version : str
        Version of the framework; empty for the newest of every operator.
    allowed_hardware : tuple[str, ...] or None
        Hardware it may run on; None is any.
    allowed_regions : tuple[str, ...] or None
        Regions it may run in; None is any.
    outside_ms : OutsideLatency
        Time spent outside inference; counts against TTFT.
    techniques : Techniques
        Serving techniques.
    variants : tuple[ModelVariant, ...]
        Alternative variants; without any, `model` at `precision` is the only one.
    quality_floor : float or None
        Minimum quality of a variant; None is no minimum.
    average_quality_floor : float or None
        Minimum mean quality of the requests of a region and moment; None is no minimum.
    served_weight : float
        Weight of a request under `objective: served`.
    serve_from : Mapping[str, tuple[str, ...]]
        Other regions that may serve the demand of a region, by region.
    mb_per_request : float
        Data of a request and its answer, sent if another region serves it. [MB]
    follows : FollowedServices or None
        Services that it follows; None for a service with its own demand.
    offline : Offline or None
        Deadline of offline work; None for an online service.
    traffic : Traffic or None
        Limits under load, burstiness and distribution of lengths; None if only means are known, and limits
        then exclude queueing.
    search : LayoutSearch
        Limits of the search.
    checkpoint : str or None
        Checkpoint in launch commands; None is `model`.
    rate_ratio : Mapping[str, float]
        Measured rates of replicas divided by predicted or given ones, by hardware; default 1.
    home_percent : float
        Largest extra cost over the cheapest plan found for serving requests in their own region. [%]
    """

    name: str
    model: str | None
    engines: pd.DataFrame | None = field(compare=False)
    precision: Precision
    classes: tuple[RequestClass, ...]
    ttft_ms: float | None
    tpot_ms: float | None
    demand: Demand
    headroom: float
    priority: int
    runtimes: tuple[str, ...]
    framework: str
    allowed_hardware: tuple[str, ...] | None
    outside_ms: OutsideLatency = field(default_factory=OutsideLatency)
    techniques: Techniques = field(default_factory=Techniques)
    variants: tuple[ModelVariant, ...] = ()
    quality_floor: float | None = None
    allowed_regions: tuple[str, ...] | None = None
    follows: FollowedServices | None = None
    offline: Offline | None = None
    served_weight: float = 1.0
    serve_from: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    mb_per_request: float = 0.0
    average_quality_floor: float | None = None
    framework_version: str = ""
    traffic: Traffic | None = None
    search: LayoutSearch = field(default_factory=LayoutSearch)
    checkpoint: str | None = None
    rate_ratio: Mapping[str, float] = field(default_factory=dict)
    home_percent: float = 0.0

    @property
    def inner_ttft_ms(self) -> float | None:
        """TTFT limit less fixed times outside inference; None without a limit. [ms]"""
        return None if self.ttft_ms is None else self.ttft_ms - self.outside_ms.total_ms

    @property
    def ttft_under_load(self) -> tuple[LatencyLimit, ...]:
        """Limits on TTFT under load."""
        return () if self.traffic is None else self.traffic.ttft

    @property
    def least_inner_ttft_ms(self) -> float:
        """The same for the strictest TTFT limit, under load or not; infinite without any. [ms]"""
        limits_ms = [limit.limit_ms for limit in self.ttft_under_load]
        if self.ttft_ms is not None:
            limits_ms.append(self.ttft_ms)
        return min(limits_ms, default=math.inf) - self.outside_ms.total_ms

    @property
    def ends_with_prompts(self) -> bool:
        """Whether all requests end with their first token, like those of classifiers and embedding models."""
        return all(each.output_tokens == 1 for each in self.classes)

    @property
    def keeps_prefixes(self) -> bool:
        """Whether its servers keep prefixes for later requests, because some request reuses one."""
        cached = any((each.context_tokens or 0) > (each.input_tokens or 0) for each in self.classes)
        techniques = self.techniques
        return cached or techniques.shared_prefix_tokens > 0 or techniques.persistent_kv is not None

    @property
    def planned_ratio(self) -> float:
        """Capacity per unit of demand: one plus the headroom."""
        return 1 + self.headroom

    @property
    def layout_framework(self) -> str:
        """Framework whose layout rules apply; empty for none."""
        return "" if self.search.any_layout else self.framework

    def may_run_in(self, region: str) -> bool:
        """Whether the service may run in a region."""
        return self.allowed_regions is None or region in self.allowed_regions
