"""Look up hardware of the catalogue by the names of drivers, labels, benchmarks and clouds."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final, TypeVar

import yaml

from fleetplan.fleet.catalog.hardware_and_prices import accelerators
from fleetplan.fleet.errors import MAX_NAMES_SHOWN, nearest

_Found = TypeVar("_Found")

_PUNCTUATION: Final = re.compile(r"[^a-z0-9]+")
_WORDS: Final = re.compile(r"[a-z0-9]+")
_SERIES: Final = re.compile(r"[a-z]+\d+[a-z]*")
"""A word that identifies a part, such as h100 or mi300x, but not a memory size such as 80gb or 80."""
_VENDOR: Final = re.compile(r"^(?:(?:nvidia|amd|instinct|intel|google|aws)[\s_-]+)+", re.IGNORECASE)
"""Words of a vendor before a name: some tools leave them out, others put them before every name."""
_DEVICE_ID: Final = re.compile(r"^0x(?=[0-9a-f]{4}$)", re.IGNORECASE)
"""Prefix of rocm-smi before the device id; AMD's node labeller writes the id alone."""
_RUNNERS: Final = "inferencex"
"""Source of names that hints omit: names of one company's clusters."""
_RUNNER: Final = re.compile(r"^cluster:|_\d{1,2}$", re.IGNORECASE)
"""Cluster words in names of InferenceX: a prefix, and a runner's number at the end."""
_SLICE: Final = re.compile(r"(?:tpu-)?(?P<kind>v\d[a-z]+)-(?P<size>\d{1,4})$", re.IGNORECASE)
_CORES_OF_A_CHIP: Final = MappingProxyType({"v5p": 2})
_DISKLESS: Final = re.compile(r"-(?:nolssd|lowmem)$", re.IGNORECASE)
"""Google Cloud's machine types without local disks or with less memory: the same accelerators."""


@dataclass(frozen=True, slots=True)
class InstanceType:
    """A kind of machine that a cloud rents out.

    Attributes
    ----------
    name : str
        As the cloud spells it.
    cloud : str
        aws, gcp, azure or oci.
    hardware : str
        Name in the catalogue.
    accelerators : int
        Accelerators in one instance.
    spot_only : bool
        Whether the cloud offers it only as spot capacity.
    """

    name: str
    cloud: str
    hardware: str
    accelerators: int
    spot_only: bool = False


class UnknownHardwareError(Exception):
    """No part of the catalogue has this name.

    Attributes
    ----------
    hint : str
        Allowed names, and the nearest match.
    """

    def __init__(self, name: str, hint: str) -> None:
        self.hint = hint
        super().__init__(f"hardware {name!r}: {hint}")


def catalogue_hardware(name: str, own: Collection[str] = ()) -> str:
    """Return the catalogue's name of hardware by any known name.

    Parameters
    ----------
    name : str
        Name in the catalogue, a driver, label, benchmark, price catalogue or cloud, or an instance type.
        Case, blanks and punctuation are ignored.
    own : Collection[str]
        Names that a fleet file defines; they take precedence.

    Raises
    ------
    UnknownHardwareError
        With the nearest known name.
    """
    found = name if name in own else part_called(name)
    if found is None:
        raise UnknownHardwareError(name, hardware_hint(name, own))
    return found


def hardware_called(name: str, own: Collection[str]) -> str:
    """Return the catalogue's name of hardware; names defined in the file and unknown names stay."""
    return name if name in own else part_called(name) or name


def part_called(name: str) -> str | None:
    """Return the catalogue's name of hardware in any known spelling; None for other parts."""
    return _first(hardware_names(), name)


def other_part(name: str) -> str | None:
    """Describe a part that is easily confused with one of the catalogue; None for other names."""
    return _first(_other_parts(), name)


def taken_for(name: str) -> str | None:
    """Explain which part a name of the catalogue means if other tools use it for several parts."""
    found: str | None = _table()["taken_for"].get(name)
    return found


def devices_of(hardware: str) -> int:
    """Count the devices that a framework sees in one accelerator: 2 in a chip of TPU-7x."""
    found: int = _table()["devices"].get(hardware, 1)
    return found


def _first(known: Mapping[str, _Found], name: str) -> _Found | None:
    """Return the entry of the first known form of a name."""
    found = (known.get(plain_hardware(each)) for each in _forms(name))
    return next((each for each in found if each is not None), None)


def _forms(name: str) -> Iterator[str]:
    """Yield a name, and the name without the additions of some tools."""
    yield name
    for added in (_VENDOR, _DEVICE_ID, _RUNNER, _DISKLESS):
        without = added.sub("", name)
        if without != name:
            yield without
    slice_of = tpu_slice(name)
    if slice_of is not None:
        yield slice_of[0]


def hardware_hint(name: str, own: Collection[str] = ()) -> str:
    """Return a hint: the allowed names of hardware and the nearest match."""
    known = tuple(dict.fromkeys((*own, *accelerators())))
    other = other_part(name)
    if other is not None:
        return f"is {other}: no part of the catalogue"
    allowed = f"one of {len(known)} names" if len(known) > MAX_NAMES_SHOWN else ", ".join(known)
    # The catalogue's names first: hints should teach those.
    meant = _of_series(name, known) or nearest(name, known)
    meant = meant or nearest(name, (each for _, each, source in _spellings() if source != _RUNNERS))
    return f"allowed: {allowed}" + ("" if meant is None else f"; did you mean {meant!r}?")


def _of_series(name: str, known: Sequence[str]) -> str | None:
    """Return the nearest of the names with the same letters and digits as a word: H100 of `H100 80GB`."""
    for word in _WORDS.findall(name.lower()):
        if _SERIES.fullmatch(word):
            same = [each for each in known if word in _WORDS.findall(each.lower())]
            if same:
                return nearest(name, same, least_ratio=0.0)
    return None


@cache
def hardware_names() -> Mapping[str, str]:
    """Map every known name, in the form of `plain_hardware`, to the catalogue's name.

    Raises
    ------
    ValueError
        A name belongs to two parts.
    """
    found = {plain_hardware(name): name for name in accelerators()}
    for part, name, _ in _spellings():
        for plain in _with_and_without_vendor(name):
            if found.setdefault(plain, part) != part:
                raise ValueError(f"{name!r} stands for {found[plain]} and {part}")
    return MappingProxyType(found)


@cache
def instance_types() -> Mapping[str, InstanceType]:
    """Map the names of instance types, in the form of `plain_hardware`, to their kinds."""
    spot_only = frozenset(_table()["spot_only"])
    return MappingProxyType(
        {
            plain_hardware(name): InstanceType(name, cloud, hardware, accelerators_each, name in spot_only)
            for cloud, parts in _table()["instances"].items()
            for hardware, types in parts.items()
            for name, accelerators_each in types.items()
        }
    )


@lru_cache(maxsize=4096)
def instance_type(name: str) -> InstanceType | None:
    """Return the kind of an instance type by name; None for one without accelerators of the catalogue."""
    return _first(instance_types(), name)


def tpu_slice(name: str) -> tuple[str, int] | None:
    """Split the name of a TPU slice into its type and its number of chips; None for other names.

    Google Cloud writes `v6e-8`, SkyPilot `tpu-v6e-8`.
    The size of v5p is in TensorCores, of which a chip has two; that of v5e and v6e is in chips
    (docs.cloud.google.com/tpu, TPU configurations).
    """
    found = _SLICE.match(name)
    if found is None:
        return None
    kind = found["kind"].lower()
    return f"tpu-{kind}", int(found["size"]) // _CORES_OF_A_CHIP.get(kind, 1)


def instances_of(hardware: str, cloud: str, accelerators_each: int) -> tuple[InstanceType, ...]:
    """Return the instance types of a cloud (aws, gcp, azure, oci) with a number of accelerators of a kind."""
    return tuple(
        each
        for each in instance_types().values()
        if (each.hardware, each.cloud, each.accelerators) == (hardware, cloud, accelerators_each)
    )


def gke_accelerator(hardware: str) -> str | None:
    """Return the value of the label cloud.google.com/gke-accelerator for a GPU; None if GKE has none."""
    labels: list[str] = _table()["names"].get(hardware, {}).get("label", [])
    return next((each for each in labels if each.startswith("nvidia-")), None)


def plain_hardware(name: str) -> str:
    """Normalise a name: lower case, letters and digits only."""
    return _PUNCTUATION.sub("", name.lower())


def _with_and_without_vendor(name: str) -> tuple[str, str]:
    """Yield a name in the form of `plain_hardware`, and without the words of its vendor."""
    return plain_hardware(name), plain_hardware(_VENDOR.sub("", name))


def _spellings() -> Iterator[tuple[str, str, str]]:
    """Part, its other name, and the source of that name."""
    for part, by_source in _table()["names"].items():
        for source, names in by_source.items():
            yield from ((part, name, source) for name in names)
    for each in instance_types().values():
        yield each.hardware, each.name, each.cloud


@cache
def _other_parts() -> Mapping[str, str]:
    others: dict[str, str] = _table()["other_parts"]
    return MappingProxyType(
        {plain: what for name, what in others.items() for plain in _with_and_without_vendor(name)}
    )


@cache
def _table() -> Mapping[str, Any]:
    text = (files("fleetplan.fleet.catalog") / "hardware_names.yaml").read_text("utf-8")
    found: dict[str, Any] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return MappingProxyType(found)
