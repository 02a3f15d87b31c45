"""Hardware that a serving framework runs on."""

from __future__ import annotations

from typing import Final

ONLY_VENDORS: Final = {"trtllm": frozenset({"NVIDIA"})}
"""Vendors that a framework is limited to. Source: nvidia.github.io/TensorRT-LLM/supported-hardware."""

UNKNOWN_VENDORS: Final = frozenset({None, "own", "anonymised"})
"""Vendor names of parts without a known vendor: of fleet files that name none, and of published tables."""


def may_be_of(vendor: str | None, vendors: frozenset[str] | None) -> bool:
    """Return whether parts of a vendor may be those of some; None are all vendors, or one that is not known.

    Parameters
    ----------
    vendor : str or None
        NVIDIA, AMD, ...
    vendors : frozenset[str] or None
        Framework to check.
    """
    return vendors is None or vendor in UNKNOWN_VENDORS or vendor in vendors


def runs_on(framework: str, vendor: str | None) -> bool:
    """Return whether a framework runs on the parts of a vendor; None is one that is not known.

    Parameters
    ----------
    framework : str
        trtllm, sglang or vllm.
    vendor : str or None
        NVIDIA, AMD, ...
    """
    return may_be_of(vendor, ONLY_VENDORS.get(framework))
