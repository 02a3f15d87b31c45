"""Schema of parts of a service: services that it follows, search limits, and time outside inference."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag

from fleetplan.fleet.schema.values import TAG_MARK, Name, NotNegative, PositiveCount, Spec

TtftShare: TypeAlias = Annotated[float, Field(gt=0, lt=1)]


def _ratio_form(value: object) -> str:
    return f"{TAG_MARK}by_class" if isinstance(value, dict) else f"{TAG_MARK}once"


RatioByClass: TypeAlias = Annotated[
    Annotated[NotNegative, Tag(f"{TAG_MARK}once")]
    | Annotated[dict[Name, NotNegative], Tag(f"{TAG_MARK}by_class")],
    Discriminator(_ratio_form),
]


class FollowsSpec(Spec):
    """A service whose requests cause requests of this one: safety checks, rewriting, reward models."""

    service: Name
    """The service to follow, which may follow another one but is not offline."""
    ratio: RatioByClass
    """Requests of this service per request of the followed one: a number, or numbers by its classes (default
    0). Regions, periods and growth are those of the followed service."""
    ttft_share: TtftShare | None = None
    """Share of the followed service's `slo.ttft_ms` if both services handle a request in sequence; the limit
    then applies to both together, times outside inference included. Default: this service has its own limits,
    as it has if it follows several services."""


def _follows_form(value: object) -> str:
    return f"{TAG_MARK}several" if isinstance(value, list) else f"{TAG_MARK}one"


FollowedServices: TypeAlias = Annotated[
    Annotated[FollowsSpec, Tag(f"{TAG_MARK}one")]
    | Annotated[list[FollowsSpec], Field(min_length=1), Tag(f"{TAG_MARK}several")],
    Discriminator(_follows_form),
]


class OutsideSpec(Spec):
    """Mean time of a request outside inference; all of it counts against TTFT."""

    network: NotNegative = 0.0
    """Round-trip time to the region. [ms]"""
    load_balancing: NotNegative = 0.0
    """Routing and admission. [ms]"""
    media_download: NotNegative = 0.0
    """Fetching images, sound or documents of the prompt. [ms]"""
    safety: NotNegative = 0.0
    """Checks before the first token that are not planned as a service. [ms]"""
    front_end: NotNegative | None = None
    """The server before the engine: HTTP, tokenisation, the return of the first token. Default: the measured
    time of the framework (vLLM 10 ms and 10 us per prompt token). [ms]"""


Degrees: TypeAlias = Annotated[list[PositiveCount], Field(min_length=1)]


class SearchSpec(Spec):
    """Configurations of a service to search."""

    layouts: Literal["framework", "any"] = "framework"
    """framework: layouts that `framework` can run, by its documentation. any: all layouts that the model
    allows, for your own framework."""
    max_accelerators: PositiveCount | None = None
    """Accelerators of the largest replica. Default: a scale-up domain or two hosts of 8; four times the
    accelerators that hold the weights, if that is more; and expert groups as wide as the number of experts
    for models with 100 billion expert weights or more."""
    pipeline_stages: Degrees | None = None
    """Numbers of pipeline stages to search. Default: powers of two up to 64. Decode replicas have one stage
    under `sglang`, unless this list has a single number: then they have as many as the prefill replicas."""
    context_ranks: Degrees | None = None
    """Degrees of context parallelism to search. Default: 1, and also 2, 3, 4, 6 and 8 for prompts of 32,768
    tokens or more."""
