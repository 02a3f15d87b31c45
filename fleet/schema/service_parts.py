"""Blocks of a service: what it follows, and the time that a request spends outside inference."""

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
    """Another service whose requests bring requests of this one: safety checks, rewriting, reward models."""

    service: Name
    """The service that is followed; it may follow another one itself, and is not offline."""
    ratio: RatioByClass
    """Requests of this service for each request of the other one: a number, or numbers by its classes
    (default 0). Regions, periods and growth are those of the other service."""
    ttft_share: TtftShare | None = None
    """Where both work on a request one after the other: this service's part of the other one's `slo.ttft_ms`,
    which then limits both together, outside times included. Left out, this service has limits of its own; so
    it has where it follows several."""


def _follows_form(value: object) -> str:
    return f"{TAG_MARK}several" if isinstance(value, list) else f"{TAG_MARK}one"


Follows: TypeAlias = Annotated[
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
    """The server before the engine: HTTP, tokenisation, the way back of the first token. Default: what the
    framework takes, as measured (vLLM 10 ms and 10 us a prompt token). [ms]"""


Degrees: TypeAlias = Annotated[list[PositiveCount], Field(min_length=1)]


class SearchSpec(Spec):
    """Which configurations of a service are searched."""

    layouts: Literal["framework", "any"] = "framework"
    """framework: layouts that `framework` is documented to run. any: all that the model allows, for your own
    framework."""
    max_accelerators: PositiveCount | None = None
    """Accelerators of the largest replica. Left out: a scale-up domain or two hosts of 8, four times as many
    accelerators as hold the weights where that is more, and expert groups as wide as the experts of a model
    with 100 billion expert weights or more."""
    pipeline_stages: Degrees | None = None
    """Pipeline stages that are tried. Default: powers of two up to 64. Under `sglang` decode replicas have
    one, unless one number alone is stated here: then they have as many as the prefill replicas."""
    context_ranks: Degrees | None = None
    """Degrees of context parallelism that are tried. Left out: 1, and also 2, 3, 4, 6 and 8 for prompts of
    32,768 tokens or more."""
