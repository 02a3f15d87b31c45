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
    """Which configurations of a service are searched; what is None or empty follows from model and hardware.

    Attributes
    ----------
    any_layout : bool
        Whether layouts count that the service's framework cannot run.
    max_accelerators : int or None
        Largest replica. [accelerators]
    pipeline_stages, context_ranks : tuple[int, ...]
        Degrees that are tried.
    """

    any_layout: bool = False
    max_accelerators: int | None = None
    pipeline_stages: tuple[int, ...] = ()
    context_ranks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RequestClass:
    """A kind of request of a service.

    Attributes
    ----------
    name : str
        The name in the fleet file; `all` where the service has one kind of request.
    share : float
        Its part of the service's requests over the whole horizon, 0 to 1.
    input_tokens, output_tokens : int or None
        Mean new prompt tokens and generated tokens of a request. None only for a service with an
        engine table that states no workload.
    context_tokens : int or None
        Prompt tokens with those that a cache already holds; None where nothing is cached.
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
        The way there and back; routing and admission; fetching media; checks that are no service. [ms]
    front_end_ms : float or None
        The server before the engine, which the performance model counts to TTFT; None is what the framework
        takes. [ms]
    """

    network_ms: float = 0.0
    load_balancing_ms: float = 0.0
    media_download_ms: float = 0.0
    safety_ms: float = 0.0
    front_end_ms: float | None = None

    @property
    def total_ms(self) -> float:
        """All of it but for the front end. [ms]."""
        return self.network_ms + self.load_balancing_ms + self.media_download_ms + self.safety_ms


@dataclass(frozen=True, slots=True)
class Follows:
    """Leaders of a service whose demand follows them.

    Attributes
    ----------
    services : tuple[str, ...]
        The services whose requests bring those of this one.
    ttft_share : float or None
        Part of the TTFT limit of the one that it follows; None where it has a limit of its own or none.
    """

    services: tuple[str, ...]
    ttft_share: float | None = None

    @property
    def names(self) -> str:
        """The services in words."""
        return ", ".join(self.services)


@dataclass(frozen=True, slots=True)
class Service:
    """A service with its targets and its demand. Exactly one of `model` and `engines` is set.

    Attributes
    ----------
    name : str
        The name in the fleet file.
    model : str or None
        An id of the model catalogue, or the path of a `config.json` relative to the fleet file.
    engines : pandas.DataFrame or None
        The user's own engine table; columns of the table `engines` in `fleetplan.fleet.tables`.
    precision : Precision
        Data types of weights and KV cache.
    classes : tuple[RequestClass, ...]
        Kinds of request, at least one.
    ttft_ms, tpot_ms : float or None
        Smallest limits on the time to first token and the time per output token, whether on means or on
        percentiles: no configuration may exceed them without load. None is no limit. [ms]
    demand : Demand
        Demand of every slice and demand scenario by (region, period, class); every combination is present.
    headroom : float
        Planned capacity above demand, as a share of it.
    priority : int
        1 is served first.
    runtimes : tuple[str, ...]
        Allowed runtimes: disaggregated, aggregated.
    framework : str
        Whose measured operator tables are read: trtllm, sglang or vllm.
    framework_version : str
        Which of its versions; empty for the newest of every operator.
    allowed_hardware : tuple[str, ...] or None
        Hardware it may run on; None is any.
    allowed_regions : tuple[str, ...] or None
        Regions it may run in; None is any.
    outside_ms : OutsideLatency
        Time spent outside inference; counts against TTFT.
    techniques : Techniques
        Serving techniques.
    variants : tuple[ModelVariant, ...]
        Ways to serve it that compete; without any, `model` at `precision` is the only one.
    quality_floor : float or None
        Least quality of a variant; None is none.
    average_quality_floor : float or None
        Least quality of the requests of a region and moment on average; None is none.
    served_weight : float
        What a request counts where the most demand is to be served.
    serve_from : Mapping[str, tuple[str, ...]]
        Other regions that may serve the demand of a region, by region.
    mb_per_request : float
        Data of a request and its answer that travel where another region serves it. [MB]
    follows : Follows or None
        The service whose requests bring those of this one; None where the demand is the service's own.
    offline : Offline or None
        Deadline of work that nobody waits for; None for a service that answers at once.
    traffic : Traffic or None
        Limits that hold under load, burstiness and spread of lengths; None where nothing is known beyond
        means, and limits leave queueing out.
    search : LayoutSearch
        Which configurations are searched.
    checkpoint : str or None
        What launch commands name; None is what `model` names.
    rate_ratio : Mapping[str, float]
        Measured rates of replicas over those that are predicted or given, by hardware; 1 where absent.
    home_percent : float
        Most that a plan may cost more than the cheapest one found so that requests stay in their region. [%]
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
    follows: Follows | None = None
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
        """What the limit on TTFT leaves for the engine and ways to other regions; None without one. [ms]"""
        return None if self.ttft_ms is None else self.ttft_ms - self.outside_ms.total_ms

    @property
    def ttft_under_load(self) -> tuple[LatencyLimit, ...]:
        """Limits on TTFT that hold under load."""
        return () if self.traffic is None else self.traffic.ttft

    @property
    def least_inner_ttft_ms(self) -> float:
        """The same for the strictest of its limits on TTFT, under load or not; infinite without any. [ms]"""
        limits_ms = [limit.limit_ms for limit in self.ttft_under_load]
        if self.ttft_ms is not None:
            limits_ms.append(self.ttft_ms)
        return min(limits_ms, default=math.inf) - self.outside_ms.total_ms

    @property
    def ends_with_prompts(self) -> bool:
        """Whether all requests end with their first token, as those of classifiers and embeddings do."""
        return all(each.output_tokens == 1 for each in self.classes)

    @property
    def keeps_prefixes(self) -> bool:
        """Whether its servers keep prefixes for later requests: some request has one that was computed."""
        cached = any((each.context_tokens or 0) > (each.input_tokens or 0) for each in self.classes)
        techniques = self.techniques
        return cached or techniques.shared_prefix_tokens > 0 or techniques.persistent_kv is not None

    @property
    def planned_ratio(self) -> float:
        """Capacity that is planned for a unit of demand: one, and the headroom."""
        return 1 + self.headroom

    @property
    def layout_framework(self) -> str:
        """Framework whose rules on layouts count; empty where none do."""
        return "" if self.search.any_layout else self.framework

    def may_run_in(self, region: str) -> bool:
        """Whether the service may run in a region."""
        return self.allowed_regions is None or region in self.allowed_regions
