"""Which parts a serving framework runs on."""

from __future__ import annotations

from typing import Final

ONLY_VENDORS: Final = {"trtllm": frozenset({"NVIDIA"})}
"""Vendors of the parts that a framework runs on, where it runs on those alone. Source:
nvidia.github.io/TensorRT-LLM/supported-hardware."""

OWN_VENDOR: Final = "own"
"""The vendor of parts of the fleet file that name none, which may be anyone's."""


def runs_on(framework: str, vendor: str | None) -> bool:
    """Return whether a framework runs on the parts of a vendor; None is one that is not known.

    Parameters
    ----------
    framework : str
        trtllm, sglang or vllm.
    vendor : str or None
        NVIDIA, AMD, ...
    """
    known = ONLY_VENDORS.get(framework)
    return known is None or vendor in (None, OWN_VENDOR) or vendor in known
