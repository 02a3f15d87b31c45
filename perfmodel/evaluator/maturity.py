"""Select the maturity factor of a part without operator tables."""

from __future__ import annotations

from dataclasses import replace

from fleetplan.fleet.inventory import Accelerator, Maturity


def matured(
    accelerator: Accelerator, framework: str, software_date: str = "", weights: str = ""
) -> Accelerator:
    """Return the part with the maturity factor of a framework at a date.

    Parameters
    ----------
    accelerator : Accelerator
        Its efficiency lists the factors that are known.
    framework : str
        trtllm, sglang or vllm.
    software_date : str
        Year and month of the software (YYYY-MM); empty for the newest factor.
    weights : str
        Data type of the feed-forward weights; empty for one without a factor of its own.
    """
    found = maturity_in_force(accelerator.efficiency.maturity, framework, software_date, weights)
    if found is None:
        return accelerator
    efficiency = replace(accelerator.efficiency, maturity_factor=found.factor, maturity_source=found.source)
    return replace(accelerator, efficiency=efficiency)


def maturity_in_force(
    known: tuple[Maturity, ...], framework: str, software_date: str = "", weights: str = ""
) -> Maturity | None:
    """Find the factor of a framework at a date; None without any.

    Among the factors for the data type of the weights, or else those for any type: the last one that had
    begun, or the first one for older software.
    """
    own = sorted((each for each in known if each.framework == framework), key=lambda each: each.since)
    own = [each for each in own if each.weights == weights] or [each for each in own if not each.weights]
    if not own:
        return None
    begun = [each for each in own if not software_date or each.since <= software_date]
    return begun[-1] if begun else own[0]
