"""Schema of networks: transfers of KV caches, and regions that serve other regions."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag

from fleetplan.fleet.schema.values import TAG_MARK, HardwareName, Name, NotNegative, Positive, Spec


class KvPairSpec(Spec):
    """Hardware of a prefill and of a decode replica between which a KV cache may travel."""

    prefill: HardwareName
    """Hardware that sends the KV cache."""
    decode: HardwareName
    """Hardware that receives the KV cache."""


class KvLinkSpec(Spec):
    """A network with limited capacity for KV caches, in one direction."""

    prefill: Name
    """Region, or pool of this file, that sends caches."""
    decode: Name
    """Region or pool that receives caches; the same name for transfers within it."""
    gb_per_s: Positive
    """Bandwidth. [GB/s]"""
    added_ms: NotNegative = 0.0
    """Mean extra time of a transfer compared with one within a region, included in TTFT. [ms]"""


class QualityFloorSpec(Spec):
    """Minimum quality of the variants that serve a service."""

    each_request: float | None = None
    """Minimum for every request. Default: no minimum."""
    average: float | None = None
    """Minimum for the mean over the requests of each region and period. Default: no minimum."""


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
