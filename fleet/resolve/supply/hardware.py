"""Resolve the block `hardware`: new parts, and changes to parts of the catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from fleetplan.fleet.catalog import accelerators, efficiency_profiles
from fleetplan.fleet.catalog.hardware_names import hardware_hint
from fleetplan.fleet.document import KeyPath
from fleetplan.fleet.inventory import Accelerator, Hardware, SpeedFigures
from fleetplan.fleet.inventory.power import (
    LOWEST_POWER_CAP_RATIO,
    hardware_kind,
    idle_of_full_w,
    power_capped,
)
from fleetplan.fleet.resolve.context import Context
from fleetplan.fleet.schema.supply import HardwareSpec

# Required figures of a new part; engine tables need none of them.
_NEEDED_FIGURES: Final = ("bf16_tflops", "hbm_gib", "hbm_gb_per_s", "scale_up_gb_per_s")
_FIGURES: Final = (
    *_NEEDED_FIGURES,
    "vendor",
    "fp8_tflops",
    "fp4_tflops",
    "int8_tops",
    "scale_up_accelerators",
    "scale_out_gb_per_s",
    "tdp_w",
    "all_in_w",
    "idle_w",
    "accelerators_per_host",
)
_OF_HOSTS: Final = frozenset(
    {"accelerators_per_host", "scale_up_accelerators", "all_in_w", "idle_w", "tdp_w"}
)
"""Figures of hosts; a part with other values is still the catalogue's part."""
_SCALED: Final = "times measured on {base} are scaled by the ratio of rooflines and count as extrapolated"
# Default roofline constants of a new part.
NEW_PART_PROFILE: Final = "carried-over"


def resolve_hardware(context: Context, block: Mapping[str, HardwareSpec]) -> dict[str, Hardware]:
    """Return every part of the catalogue and of the block `hardware`, by name."""
    catalogue = accelerators()
    found = {name: replace(hardware_kind(name, part), part=name) for name, part in catalogue.items()}
    for name, spec in block.items():
        key_path = ("hardware", name)
        base_name = spec.like if spec.like is not None else (name if name in catalogue else None)
        if base_name is not None and base_name not in catalogue:
            hint = hardware_hint(base_name)
            context.error((*key_path, "like"), f"the catalogue has no part {base_name!r}", hint)
            continue
        part = (
            _changed(context, key_path, name, catalogue[base_name], spec)
            if base_name is not None
            else _new_part(context, key_path, name, spec)
        )
        if spec.optables is not None:
            part = _with_tables(context, key_path, part, spec.optables)
        if part is not None:
            same = base_name is not None and (name == base_name or _given(spec).keys() <= _OF_HOSTS)
            found[name] = replace(hardware_kind(name, part), part=base_name if same else None)
        else:
            found[name] = _without_figures(name, spec)
        _check_idle(context, key_path, spec, found[name])
    return found


def _without_figures(name: str, spec: HardwareSpec) -> Hardware:
    """Return a kind that only engine tables use."""
    idle_w = idle_of_full_w(spec.all_in_w or 0.0) if spec.idle_w is None else spec.idle_w
    return Hardware(name, spec.accelerators_per_host or 1, None, spec.all_in_w, idle_w)


def _check_idle(context: Context, key_path: KeyPath, spec: HardwareSpec, hardware: Hardware) -> None:
    full_w = hardware.power_w_per_accelerator
    if spec.idle_w is not None and full_w is not None and spec.idle_w > full_w:
        hint = f"at most the power at full load, {full_w:g} W"
        context.error((*key_path, "idle_w"), f"a card that runs nothing cannot draw {spec.idle_w:g} W", hint)


def _given(spec: HardwareSpec) -> dict[str, object]:
    return {key: getattr(spec, key) for key in _FIGURES if getattr(spec, key) is not None}


def _changed(
    context: Context, key_path: KeyPath, name: str, base: Accelerator, spec: HardwareSpec
) -> Accelerator:
    # A value equal to the catalogue's is no change.
    given = {key: value for key, value in _given(spec).items() if value != getattr(base, key)}
    part = replace(base, name=name).with_figures(**{**_of_smaller_hosts(base, spec), **given})
    if "scale_up_accelerators" in given:
        # A larger or smaller domain than the catalogue's mesh has unknown wiring.
        part = replace(part, scale_up_mesh=False)
    if given:
        source = f"fleet file: {', '.join(f'{key} {value}' for key, value in given.items())}"
        part = replace(part, sources=(*base.sources, source))
    names = ", ".join(key for key in given if key in SpeedFigures.__slots__)
    if names and part.measured_figures is not None:
        context.warn(key_path, f"{names} of its own: {_SCALED.format(base=base.name)}")
    if spec.profile is not None:
        part = _with_profile(context, key_path, part, spec.profile)
    return part if spec.power_cap_w is None else _capped(context, key_path, part, spec.power_cap_w, base.name)


def _of_smaller_hosts(base: Accelerator, spec: HardwareSpec) -> dict[str, object]:
    """Return the figures of a part in smaller hosts than its links reach: no links join two hosts.

    Domains of several hosts (a rack of 72, a pod) and domains stated in the file stay.
    """
    host, domain = spec.accelerators_per_host, base.scale_up_accelerators
    joins_hosts = domain > base.accelerators_per_host
    if host is None or host >= domain or joins_hosts or spec.scale_up_accelerators is not None:
        return {}
    # In a mesh, a card keeps its links to the remaining cards.
    links = (host - 1) / (domain - 1) if base.scale_up_mesh and host > 1 else 1.0
    return {"scale_up_accelerators": host, "scale_up_gb_per_s": base.scale_up_gb_per_s * links}


def _capped(
    context: Context, key_path: KeyPath, part: Accelerator, power_cap_w: float, base: str
) -> Accelerator:
    here = (*key_path, "power_cap_w")
    if part.tdp_w is None:
        context.error(here, "the catalogue has no board power for this part", "give tdp_w as well")
        return part
    lowest_w = LOWEST_POWER_CAP_RATIO * part.tdp_w
    if not lowest_w <= power_cap_w <= part.tdp_w:
        context.error(
            here,
            f"must be from {lowest_w:g} to {part.tdp_w:g} W, not {power_cap_w:g}",
            "the clock follows the cap only in that range",
        )
        return part
    capped = power_capped(part, power_cap_w)
    if capped.measured_figures is not None and part.measured_figures is None:
        context.warn(key_path, f"power cap: {_SCALED.format(base=base)}")
    return capped


def _new_part(context: Context, key_path: KeyPath, name: str, spec: HardwareSpec) -> Accelerator | None:
    """Return a part with all figures, or None for a part that only engine tables can use."""
    given = _given(spec)
    if spec.power_cap_w is not None:
        context.error((*key_path, "power_cap_w"), "a cap needs a part to change", "name it with `like`")
    computed = given.keys() - {"vendor", "accelerators_per_host", "all_in_w", "idle_w"}
    if not computed:
        return None
    missing = [figure for figure in _NEEDED_FIGURES if figure not in given]
    if missing:
        hint = "or name a catalogue part with `like`"
        context.error(key_path, f"a new part also needs {', '.join(missing)}", hint)
        return None
    host = spec.accelerators_per_host or 1
    if spec.profile is None:
        context.warn(key_path, f"names no roofline profile: computed with {NEW_PART_PROFILE!r}")
    part = Accelerator(
        name=name,
        vendor=spec.vendor or "own",
        bf16_tflops=float(spec.bf16_tflops or 0),
        fp8_tflops=spec.fp8_tflops,
        fp4_tflops=spec.fp4_tflops,
        int8_tops=spec.int8_tops,
        hbm_gib=float(spec.hbm_gib or 0),
        hbm_gb_per_s=float(spec.hbm_gb_per_s or 0),
        scale_up_gb_per_s=float(spec.scale_up_gb_per_s or 0),
        scale_up_accelerators=spec.scale_up_accelerators or host,
        scale_out_gb_per_s=spec.scale_out_gb_per_s,
        tdp_w=spec.tdp_w,
        all_in_w=spec.all_in_w,
        idle_w=spec.idle_w,
        accelerators_per_host=host,
        lifecycle="stable",
        measured_system=None,
        efficiency=efficiency_profiles()[NEW_PART_PROFILE],
        sources=("fleet file",),
    )
    return part if spec.profile is None else _with_profile(context, key_path, part, spec.profile)


def _with_profile(context: Context, key_path: KeyPath, part: Accelerator, profile: str) -> Accelerator:
    profiles = efficiency_profiles()
    if context.check_name((*key_path, "profile"), "roofline profile", profile, tuple(profiles)):
        return replace(part, efficiency=profiles[profile])
    return part


def _with_tables(
    context: Context, key_path: KeyPath, part: Accelerator | None, reference: str
) -> Accelerator | None:
    """Return a part with its own operator tables, which the performance model reads."""
    here = (*key_path, "optables")
    if part is None:
        context.error(here, "needs the figures of the part as well", "or name a catalogue part with `like`")
        return None
    path = context.readable_file(here, reference)
    if path is None:
        return part
    return replace(part, operator_tables=(*part.operator_tables, str(path)))
