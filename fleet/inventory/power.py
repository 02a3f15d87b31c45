"""Power of an accelerator with its share of the host, busy and idle, and under a power cap."""

from __future__ import annotations

from typing import Final

from fleetplan.fleet.inventory import Accelerator, Hardware

# All-in power (card, host, network, fans; before PUE) over board power, where only the latter is known: the
# median of A100 2.03, H100 1.96, H200 1.96, B200 1.71, GB200 1.56, MI300X 1.85 in the AI cloud TCO table of
# InferenceX-app@7fe6d62 (2026-08).
ALL_IN_TO_TDP_RATIO: Final = 1.9

# Idle power divided by power at full load, for hardware without an idle figure: a GB200 compute tray idles at
# 1,000 W of at most 6,667 W (NVIDIA DPS documentation, device specifications, read 2026-11). No other vendor
# figure for a whole node was found.
IDLE_TO_FULL_RATIO: Final = 0.15

# Dynamic power is capacitance * voltage^2 * frequency, and the voltage follows the frequency, so the clock
# follows the cube root of the power. Patel et al., "Characterizing Power Management Opportunities for LLMs
# in the Cloud" (ASPLOS 2024; arXiv 2308.12908), find at most 7 % lost for up to 20 % less peak power where
# A100 are locked to a lower clock (read in a published summary, not in the paper); the rule says 7.2 %. The
# memory keeps its bandwidth: "Splitwise" (arXiv 2311.18677) finds decode hardly slower at 350 of 700 W.
POWER_CAP_EXPONENT: Final = 1 / 3
# Below half the board power the voltage is at its floor and the rule no longer holds.
LOWEST_POWER_CAP_RATIO: Final = 0.5


def all_in_power_w(accelerator: Accelerator) -> float | None:
    """Return the power of a card with its share of host, network and fans, before PUE. [W]

    The catalogue's figure if there is one, else `ALL_IN_TO_TDP_RATIO` times the board power, else None.
    """
    if accelerator.all_in_w is not None:
        return accelerator.all_in_w
    return None if accelerator.tdp_w is None else accelerator.tdp_w * ALL_IN_TO_TDP_RATIO


def idle_power_w(accelerator: Accelerator) -> float:
    """Return the idle power of a card with its share of the host, before PUE. [W]

    The figure of the catalogue or the fleet file, if there is one. Otherwise the card's idle power plus
    `IDLE_TO_FULL_RATIO` times the remaining power at full load, or that ratio of all power if the card's is
    unknown. 0 if no power is known; never more than at full load.
    """
    all_in_w = all_in_power_w(accelerator)
    if accelerator.idle_w is not None:
        return accelerator.idle_w if all_in_w is None else min(accelerator.idle_w, all_in_w)
    if all_in_w is None:
        return 0.0
    if accelerator.idle_board_w is None or accelerator.tdp_w is None:
        return idle_of_full_w(all_in_w)
    rest_w = max(all_in_w - accelerator.tdp_w, 0.0)
    return min(accelerator.idle_board_w + idle_of_full_w(rest_w), all_in_w)


def idle_of_full_w(full_w: float) -> float:
    """Return the idle power of hardware with a known power at full load only. [W]"""
    # Without float noise: the power limit counts whole watts, rounded up.
    return round(IDLE_TO_FULL_RATIO * full_w, 3)


def hardware_kind(name: str, part: Accelerator) -> Hardware:
    """Return a kind of hardware for pools and offers, with its power busy and idle."""
    host, full_w, idle_w = part.accelerators_per_host, all_in_power_w(part), idle_power_w(part)
    return Hardware(name, host, part, full_w, idle_w, part.installed_w)


def power_capped(accelerator: Accelerator, power_cap_w: float) -> Accelerator:
    """Return the accelerator under a power cap: slower matrix units, unchanged memory and links.

    Measured operator times are for the full clock and are multiplied by the ratio of the rooflines.

    The cap limits what the part takes of a region's power. It does not make work cheaper: energy and hosting
    are charged as without the cap. Work that the cap does not slow draws less than the cap at the full clock
    too (decode on an H200 137 to 300 of 700 W at any cap: Ma et al., "The Illusion of Power Capping in LLM
    Decode", arXiv 2605.11999, H200, 2026-05). What a lower clock saves of the energy of matrix products is a
    setting of every part of the kind, and no reason to prefer the one that is set so. A finer split, energy
    by the resource that bounds an operator, does not hold: the power columns of the vLLM 0.22 tables of B200
    (aiconfigurator-core 0.12.0) show 0.65 of the limit for decode attention and 0.98 for experts, both at
    more than 0.8 of the memory bandwidth, and a linear model of both utilisations misses the kind of operator
    that is left out of its fit by 12 to 41 % at the median.

    Parameters
    ----------
    accelerator : Accelerator
        Must have a board power.
    power_cap_w : float
        From `LOWEST_POWER_CAP_RATIO` of the board power up to the board power. [W]

    Raises
    ------
    ValueError
        The cap is outside that range, or the board power is unknown.
    """
    tdp_w = accelerator.tdp_w
    if tdp_w is None:
        raise ValueError(f"the board power of {accelerator.name} is unknown")
    if not LOWEST_POWER_CAP_RATIO * tdp_w <= power_cap_w <= tdp_w:
        raise ValueError(f"a cap of {power_cap_w} W is outside the range for {tdp_w} W")
    clock_ratio = (power_cap_w / tdp_w) ** POWER_CAP_EXPONENT
    all_in_w = all_in_power_w(accelerator)
    assert all_in_w is not None, "a part with a board power has an all-in power"
    return accelerator.with_figures(
        bf16_tflops=accelerator.bf16_tflops * clock_ratio,
        fp8_tflops=_scaled(accelerator.fp8_tflops, clock_ratio),
        fp4_tflops=_scaled(accelerator.fp4_tflops, clock_ratio),
        int8_tops=_scaled(accelerator.int8_tops, clock_ratio),
        tdp_w=power_cap_w,
        # Hardware that draws less than the cap is not affected, nor is the rest of the host.
        all_in_w=max(all_in_w - tdp_w, 0.0) + min(all_in_w, power_cap_w),
        idle_w=idle_power_w(accelerator),
        installed_w=None if power_cap_w == tdp_w else all_in_w,
        sources=(
            *accelerator.sources,
            f"capped at {power_cap_w:g} W of {tdp_w:g} W: clock times {clock_ratio:.3f} (cube-root rule)",
        ),
    )


def _scaled(figure: float | None, ratio: float) -> float | None:
    return None if figure is None else figure * ratio
