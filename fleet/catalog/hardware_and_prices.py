"""The packaged catalogue: accelerators with their figures, and prices with their dates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final

import yaml

from fleetplan.fleet.inventory import Accelerator, Efficiency, Maturity

_FOLDER: Final = files("fleetplan.fleet.catalog")


@dataclass(frozen=True, slots=True)
class Price:
    """One figure of the price book.

    Attributes
    ----------
    usd_per_accelerator_hour : float
        The price, for every hour. [USD/h]
    as_of : str
        Year and month of the price.
    source : str
        Where the price was read.
    """

    usd_per_accelerator_hour: float
    as_of: str
    source: str


@cache
def efficiency_profiles() -> Mapping[str, Efficiency]:
    """Return the named sets of roofline constants that accelerators refer to."""
    profiles = _read("accelerators.yaml")["profiles"]
    return MappingProxyType({name: _efficiency(figures) for name, figures in profiles.items()})


def _efficiency(figures: dict[str, Any]) -> Efficiency:
    constants = {key: value for key, value in figures.items() if key != "maturity"}
    maturity = tuple(Maturity(**entry) for entry in figures.get("maturity", ()))
    return Efficiency(**_as_floats(constants), maturity=maturity)


@cache
def accelerators() -> Mapping[str, Accelerator]:
    """Return every accelerator of the catalogue by the name that fleet files use."""
    profiles = efficiency_profiles()
    found: dict[str, Accelerator] = {}
    for name, figures in _read("accelerators.yaml")["accelerators"].items():
        rest = {key: value for key, value in figures.items() if key not in ("profile", "sources", "like")}
        sources = tuple(figures["sources"])
        if "like" in figures:
            other = replace(found[figures["like"]], name=name, sources=sources)
            changed = other.with_figures(**_as_floats(rest))
            found[name] = _carried_over(changed)
            continue
        efficiency = profiles[figures["profile"]]
        found[name] = Accelerator(name=name, efficiency=efficiency, sources=sources, **_as_floats(rest))
    return MappingProxyType(found)


def _carried_over(part: Accelerator) -> Accelerator:
    """Return a part that uses the tables of another one; network times stay as measured."""
    measured = part.measured_figures
    if measured is not None:
        measured = replace(measured, scale_out_gb_per_s=part.scale_out_gb_per_s)
    return replace(part, measured_figures=measured, carried_figures=part.speed_figures)


@cache
def price_book() -> Mapping[str, Mapping[str, Price]]:
    """Return the price book: by accelerator name, then by column."""
    document = _read("prices.yaml")
    sources = document["sources"]
    book = {}
    for name, columns in document["usd_per_accelerator_hour"].items():
        book[name] = MappingProxyType(
            {
                column: Price(
                    usd_per_accelerator_hour=float(figure["value"]),
                    as_of=sources[figure["source"]]["as_of"],
                    source=sources[figure["source"]]["text"],
                )
                for column, figure in columns.items()
            }
        )
    return MappingProxyType(book)


@cache
def price_book_columns() -> Mapping[str, str]:
    """Return the columns of the price book with their meaning."""
    return MappingProxyType(_read("prices.yaml")["columns"])


# Figures that are counts or names; all others are quantities, held as floats.
_NOT_QUANTITIES: Final = frozenset(
    {
        "vendor",
        "scale_up_accelerators",
        "accelerators_per_host",
        "lifecycle",
        "measured_system",
        "source",
        "sram_only",
        "scale_up_mesh",
    }
)


def _as_floats(figures: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value if value is None or key in _NOT_QUANTITIES else float(value)
        for key, value in figures.items()
    }


def _read(name: str) -> dict[str, Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    document: dict[str, Any] = yaml.load((_FOLDER / name).read_text("utf-8"), Loader=loader)
    return document
