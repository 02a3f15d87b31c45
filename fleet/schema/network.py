"""Blocks about networks: who hands KV caches over to whom, and which regions serve others."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag

from fleetplan.fleet.schema.values import TAG_MARK, HardwareName, Name, NotNegative, Positive, Spec


class KvPairSpec(Spec):
    """Two kinds of hardware between which a KV cache may pass."""

    prefill: HardwareName
    """Hardware that sends it."""
    decode: HardwareName
    """Hardware that receives it."""


class KvLinkSpec(Spec):
    """A network whose capacity for KV caches counts, in one direction."""

    prefill: Name
    """The region, or the pool of this file, that caches come from."""
    decode: Name
    """The region or the pool that they go to; the same one for what passes within it."""
    gb_per_s: Positive
    """What it carries. [GB/s]"""
    added_ms: NotNegative = 0.0
    """Mean time of a transfer in addition to one within a region, part of TTFT. [ms]"""


class QualityFloorSpec(Spec):
    """Least quality of the variants that serve a service."""

    each_request: float | None = None
    """Lowest quality of any request. Default: no limit."""
    average: float | None = None
    """Of the requests of each region and period on average."""


def _pairs_form(value: object) -> str:
    return f"{TAG_MARK}list" if isinstance(value, list) else f"{TAG_MARK}rule"


KvPairs: TypeAlias = Annotated[
    Annotated[Literal["same-vendor", "any"], Tag(f"{TAG_MARK}rule")]
    | Annotated[list[KvPairSpec], Tag(f"{TAG_MARK}list")],
    Discriminator(_pairs_form),
]


def _regions_form(value: object) -> str:
    if isinstance(value, dict):
        return f"{TAG_MARK}by_region"
    return f"{TAG_MARK}list" if isinstance(value, list) else f"{TAG_MARK}rule"


Regions: TypeAlias = Annotated[list[Name], Field(min_length=1)]
AnyOrRegions: TypeAlias = Annotated[
    Annotated[Literal["any"], Tag(f"{TAG_MARK}rule")] | Annotated[Regions, Tag(f"{TAG_MARK}list")],
    Discriminator(_regions_form),
]
ServeFrom: TypeAlias = Annotated[
    Annotated[Literal["any"], Tag(f"{TAG_MARK}rule")]
    | Annotated[Regions, Tag(f"{TAG_MARK}list")]
    | Annotated[dict[Name, AnyOrRegions], Tag(f"{TAG_MARK}by_region")],
    Discriminator(_regions_form),
]


def _floor_form(value: object) -> str:
    return f"{TAG_MARK}kinds" if isinstance(value, dict) else f"{TAG_MARK}once"


QualityFloor: TypeAlias = Annotated[
    Annotated[float, Tag(f"{TAG_MARK}once")] | Annotated[QualityFloorSpec, Tag(f"{TAG_MARK}kinds")],
    Discriminator(_floor_form),
]
