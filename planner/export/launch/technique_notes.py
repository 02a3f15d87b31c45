"""Techniques that a plan assumes and that its commands do not start, with the options that start them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from fleetplan.fleet.figures import figure
from fleetplan.planner.export.launch.deployments import LaunchedGroup

SESSION_TIERS: Final[Mapping[str, str]] = {
    "vllm": "--kv-offloading-size (GiB of all ranks together, DRAM alone)",
    "sglang": "--enable-hierarchical-cache with --hicache-size, and --hicache-storage-backend for flash",
    "trtllm": "kv_cache_config.host_cache_size (bytes, DRAM alone) in the file",
}
"""What keeps caches outside HBM. Sources: vllm 0.33.0, config/cache.py; sglang 0.5.23,
srt/arg_groups/hicache_hook.py; TensorRT-LLM, KvCacheConfig. Read in November 2026."""

OFFLOADED_WEIGHTS: Final[Mapping[str, str]] = {
    "vllm": "--cpu-offload-gb (GiB an accelerator)",
    "sglang": "--cpu-offload-gb",
}
"""What keeps weights outside HBM. Sources: vllm 0.33.0, config/offload.py; sglang 0.5.23,
srt/arg_groups/field_order.py."""

EXPERT_OVERLAPS: Final[Mapping[tuple[str, str], str]] = {
    ("vllm", "two-batch"): "--enable-dbo",
    ("sglang", "two-batch"): "--enable-two-batch-overlap",
    ("sglang", "single-batch"): "--enable-single-batch-overlap",
}
"""What computes while tokens travel to experts. Sources: vllm 0.33.0, config/parallel.py; sglang 0.5.23,
srt/arg_groups/field_order.py."""

POWER_CAPS: Final[Mapping[str, str]] = {
    "NVIDIA": "sudo nvidia-smi -pl {watts}",
    "AMD": "sudo amd-smi set --gpu all --power-cap ppt0 {watts}",
}
"""Commands that cap the cards of a host until it restarts. Sources: nvidia-smi manual, --power-limit; AMD SMI
changelog, power cap types of ROCm 7.2. Read in November 2026."""


def technique_notes(deployment: LaunchedGroup, framework: str) -> Iterator[str]:
    """Yield a note on each technique of the service that the command leaves out.

    Parameters
    ----------
    deployment : LaunchedGroup
        With the techniques of its service.
    framework : str
        vllm, sglang or trtllm.
    """
    service, phase, cap_w = deployment.service, deployment.placement.phase, deployment.hardware.power_cap_w
    if cap_w is not None:
        yield power_cap_note(deployment.hardware.vendor, cap_w)
    tiers = {name: gib for name, gib in service.session_gib.items() if name != "hbm"}
    if tiers and phase != "decode":
        held = " and ".join(f"{figure(gib)} GiB of {name}" for name, gib in tiers.items())
        yield (
            f"caches of sessions are planned in {held} an accelerator: "
            f"{_add(SESSION_TIERS.get(framework), framework)}, or fewer requests find theirs"
        )
    if (weights := service.offloaded.get("weights", 0.0)) > 0:
        option = _add(OFFLOADED_WEIGHTS.get(framework), framework)
        yield f"{weights:.0%} of the weights are planned outside HBM: {option}"
    if (running := service.offloaded.get("kv", 0.0)) > 0:
        yield f"{running:.0%} of the running cache is planned outside HBM: {_add(None, framework)}"
    if service.expert_overlap != "none" and deployment.layout.ep > 1:
        option = _add(EXPERT_OVERLAPS.get((framework, service.expert_overlap)), framework)
        yield f"{service.expert_overlap} overlap of experts is planned: {option}"


def power_cap_note(vendor: str | None, cap_w: float) -> str:
    """Return a note on the power cap of a card in watts: no server and no node pool sets it."""
    command = POWER_CAPS.get(vendor or "")
    how = "set it" if command is None else command.format(watts=f"{cap_w:g}")
    return (
        f"cards are planned with a power cap of {cap_w:g} W, which nothing here sets: on each host {how}; "
        "without it they draw more of the region's power than planned"
    )


def _add(option: str | None, framework: str) -> str:
    return f"no option of {framework} is known for it" if option is None else f"add {option}"
