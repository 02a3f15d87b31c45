"""Values of a fleet file that the page can change: demand, prices, latency targets, supply, hardware."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from fleetplan.fleet.document import Document, KeyPath, Node
from fleetplan.fleet.figures import figure
from fleetplan.fleet.inventory import Fleet, Offer
from fleetplan.planner.candidates import supplied_hardware

UNITS: Final = {
    "_ms": "ms",
    "_kw": "kW",
    "_usd": "USD",
    "hosts": "hosts",
    "accelerators": "accelerators",
    "_ratio": "share",
}
"""Unit of a number by the suffix of its key."""


@dataclass(frozen=True, slots=True)
class ScaledField:
    """An item that the page scales by a factor.

    Attributes
    ----------
    name : str
        Name of a service or an offer.
    stated : str
        Description of the value in the file.
    fixed : str
        Why it cannot be scaled; empty if it can.
    """

    name: str
    stated: str
    fixed: str = ""


@dataclass(frozen=True, slots=True)
class Number:
    """A number in the file.

    Attributes
    ----------
    key_path : tuple[str, ...]
        Key path, with items of lists by name.
    label, unit : str
        Label within its owner, and unit.
    value : float or None
        Value in the file; None for no limit.
    whole : bool
        Whether it must be an integer.
    """

    key_path: tuple[str, ...]
    label: str
    unit: str
    value: float | None
    whole: bool


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of a service, an offer, a pool, a region or the budget."""

    owner: str
    numbers: tuple[Number, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """All editable values.

    Attributes
    ----------
    demand, prices : tuple[ScaledField, ...]
        Services and offers.
    targets, supply : tuple[Numbers, ...]
        Latency targets; offers, pools, power and budgets.
    hardware : tuple[ScaledField, ...]
        Kinds of hardware with their pools and offers.
    """

    demand: tuple[ScaledField, ...]
    prices: tuple[ScaledField, ...]
    targets: tuple[Numbers, ...]
    supply: tuple[Numbers, ...]
    hardware: tuple[ScaledField, ...]

    def number(self, key_path: tuple[str, ...]) -> Number | None:
        """Return the number at a path, or None."""
        groups = (*self.targets, *self.supply)
        return next((each for group in groups for each in group.numbers if each.key_path == key_path), None)


def form_of(document: Document, fleet: Fleet) -> Form:
    """Return the editable values of a fleet file.

    Parameters
    ----------
    document : Document
        The file with scenarios applied.
    fleet : Fleet
        Resolved fleet.
    """
    return Form(
        tuple(_demand(document, fleet)),
        tuple(ScaledField(offer.name, f"{offer.hardware}, {_price(offer)}") for offer in fleet.offers),
        tuple(_targets(document, fleet)),
        tuple(_supply(document, fleet)),
        tuple(ScaledField(name, ", ".join(_sources(fleet, name))) for name in supplied_hardware(fleet)),
    )


def _demand(document: Document, fleet: Fleet) -> Iterator[ScaledField]:
    for position, service in enumerate(fleet.services):
        if service.follows is not None:
            yield ScaledField(service.name, "", f"follows {service.follows.names}")
        elif demand_key(document, position) is None:
            yield ScaledField(service.name, "", "has no demand of its own")
        elif service.offline is not None:
            yield ScaledField(service.name, "offline")
        else:
            peak = max(
                sum(rate for (_, period, _), rate in service.demand.peak.items() if period == each)
                for each in fleet.periods
            )
            yield ScaledField(service.name, f"{figure(peak)} requests/s at peak")


def demand_key(document: Document, position: int) -> KeyPath | None:
    """Return the key path of a service's demand, or None if it declares none."""
    for key_path in (("demand",), ("offline", "requests_per_day")):
        if document.node(("services", position, *key_path)) is not None:
            return key_path
    return None


def _price(offer: Offer) -> str:
    if offer.rent_usd_per_accelerator_hour is None:
        return f"${figure(offer.capex_usd_per_host or 0.0)} a host"
    least, most = min(offer.rent_usd_per_accelerator_hour), max(offer.rent_usd_per_accelerator_hour)
    return f"${least:.4g} an hour" if least == most else f"${least:.4g} to ${most:.4g} an hour"


def _targets(document: Document, fleet: Fleet) -> Iterator[Numbers]:
    for position, service in enumerate(fleet.services):
        node = document.node(("services", position, "slo"))
        found = () if node is None else tuple(_numbers(node, ("services", service.name, "slo")))
        if found:
            yield Numbers(service.name, found)


def _supply(document: Document, fleet: Fleet) -> Iterator[Numbers]:
    for position, offer in enumerate(fleet.offers):
        yield _limit(document, ("offers", position), ("offers", offer.name), f"max_{offer.unit}s")
    for position, pool in enumerate(fleet.pools):
        key = "hosts" if document.node(("pools", position, "hosts")) is not None else "accelerators"
        yield _limit(document, ("pools", position), ("pools", pool.name), key)
    for region in fleet.regions:
        place = ("regions", region.name)
        if document.node(place) is not None:
            yield _limit(document, place, place, "power_kw")
    budget = document.node(("budget",))
    if budget is not None:
        yield Numbers("budget", tuple(_numbers(budget, ("budget",))))


def _limit(document: Document, place: KeyPath, key_path: tuple[str, ...], key: str) -> Numbers:
    node = document.node((*place, key))
    if node is None or node.value is None:
        whole = key != "power_kw"
        return Numbers(key_path[1], (Number((*key_path, key), _label(key), _unit(key), None, whole),))
    return Numbers(key_path[1], tuple(_leaves(node, (*key_path, key), _label(key))))


def _numbers(node: Node, key_path: tuple[str, ...]) -> Iterator[Number]:
    """Yield every number of a mapping, including those by period."""
    for key, entry in node.entries.items():
        yield from _leaves(entry.node, (*key_path, key), _label(key))


def _leaves(node: Node, key_path: tuple[str, ...], label: str) -> Iterator[Number]:
    if isinstance(node.value, Mapping):
        for key, entry in node.entries.items():
            yield from _leaves(entry.node, (*key_path, key), f"{label} {key}")
    elif isinstance(node.value, int | float) and not isinstance(node.value, bool):
        # The unit of a number by period comes from the key above it.
        keys = [each for each in key_path if _unit(each)]
        unit = _unit(keys[-1]) if keys else ""
        yield Number(key_path, label, unit, node.value, unit in ("hosts", "accelerators"))


def _label(key: str) -> str:
    words = key.removesuffix("_ms").removesuffix("_kw").removesuffix("_usd").replace("max_", "at most ")
    text = words.replace("_", " ")
    return text.replace("ttft", "TTFT").replace("tpot", "TPOT")


def _unit(key: str) -> str:
    return next((unit for end, unit in UNITS.items() if key.endswith(end)), "")


def _sources(fleet: Fleet, hardware: str) -> list[str]:
    pools = [pool.name for pool in fleet.pools if pool.hardware == hardware]
    return [*pools, *(offer.name for offer in fleet.offers if offer.hardware == hardware)]
