"""Errors of predictions against published measurements, by hardware, as plans state them.

The figures are those of docs/accuracy.md, which `python benchmarks/accuracy.py --write` writes; a test holds
them against each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fleetplan.fleet.figures import counted


@dataclass(frozen=True, slots=True)
class PublishedError:
    """Error of predicted over measured TPOT on published closed-loop rows of one hardware.

    Attributes
    ----------
    median_ratio, p90_ratio : float
        Median and 90th percentile of the absolute error.
    rows : int
        Measurements behind them.
    """

    median_ratio: float
    p90_ratio: float
    rows: int


WEAK_RATIO: Final = 0.25
"""Median error above which a plan says first that its rates on a part are weak: it may be off by a fourth of
the fleet. A chosen figure."""

TPOT_ERROR: Final[dict[str, PublishedError]] = {
    "A100-SXM-80GB": PublishedError(0.174, 0.293, 31),
    "Arc-Pro-B60": PublishedError(0.293, 0.348, 6),
    "B200-SXM": PublishedError(0.086, 0.266, 1073),
    "B300-SXM": PublishedError(0.083, 0.284, 250),
    "GB10": PublishedError(0.150, 0.246, 6),
    "GB200-NVL72": PublishedError(0.192, 0.774, 79),
    "Gaudi3": PublishedError(0.091, 0.210, 24),
    "H100-NVL": PublishedError(0.445, 0.636, 4),
    "H100-PCIe": PublishedError(0.077, 0.198, 17),
    "H100-SXM": PublishedError(0.049, 0.141, 755),
    "H20-SXM": PublishedError(0.453, 0.658, 15),
    "H200-SXM": PublishedError(0.054, 0.254, 591),
    "MI300X": PublishedError(0.230, 0.591, 42),
    "MI325X": PublishedError(0.063, 0.160, 34),
    "MI355X": PublishedError(0.087, 0.402, 209),
    "RTX-3090": PublishedError(0.328, 0.563, 10),
    "RTX-4090": PublishedError(0.228, 0.509, 32),
    "RTX-PRO-6000-Server": PublishedError(0.083, 0.284, 28),
    "TPU-7x": PublishedError(0.297, 0.595, 13),
}
"""Source: docs/accuracy.md, errors by slice, 2026-11-30. The rows of MI325X and MI355X are DeepSeek R1 alone;
so are those of MI300X, where blind rows of other models are more than twice as far off: it is their error,
under software since July 2025. Of GB200 it is the error of tokens a second at saturation, and of Gaudi3 that
of the time of static batches: TPOT of neither was published with all that a prediction needs. Of A100, GB10,
H100 NVL and PCIe, H20, RTX 3090, 4090 and PRO 6000 and TPU7x it is that of blind rows, tokens a second among
them."""

BLIND_ERROR: Final = PublishedError(0.181, 0.509, 521)
"""Error of all blind rows, on any part: figures of users' threads, blogs, vendors' pages and pull requests
that nothing in the model was chosen with. It says what to expect of one's own servers, of any version and
with any client, better than the errors of closed loops that one harness measured. Source: docs/accuracy.md,
2026-11-30."""

RECENT_BLIND_ERROR: Final = PublishedError(0.159, 0.411, 382)
"""Error of those of them whose software is of July 2025 or later, as that of a plan is. Source: as before."""

FAR_RATIO: Final = 1.25
"""Factor on the error of recent blind rows above which a plan states the median of a model family. Chosen."""

FAR_FAMILIES: Final[dict[str, PublishedError]] = {
    "kimi_k2": PublishedError(0.233, 0.688, 30),
    "qwen3_next": PublishedError(0.228, 0.294, 26),
}
"""Families by `model_type` with ten recent blind rows and more, whose median is above `FAR_RATIO` times that
of all. Source: as before."""

OWN_TPOT_ERROR: Final[dict[str, dict[str, PublishedError]]] = {
    "deepseek_v4": {
        "deepseek-ai/DeepSeek-V4-Flash": PublishedError(0.144, 0.496, 13),
        "deepseek-ai/DeepSeek-V4-Pro": PublishedError(0.436, 2.159, 13),
    },
    "kimi_linear": {"moonshotai/Kimi-K3": PublishedError(0.361, 0.514, 8)},
    "minimax_m3": {"MiniMaxAI/MiniMax-M3": PublishedError(0.310, 0.471, 22)},
}
"""TPOT errors of architectures with operators of their own, by `model_type` and model: errors by hardware do
not apply to them. Source: docs/accuracy.md, DeepSeek-V4, MiniMax-M3 and Kimi-K3."""


def own_error_text(model_type: str) -> str:
    """Describe the errors on an architecture's own published loops; '' if it has no separate figure."""
    found = OWN_TPOT_ERROR.get(model_type, {})
    return ", ".join(
        f"{name} {error.median_ratio:.0%} / {error.p90_ratio:.0%} ({counted(error.rows, 'row')})"
        for name, error in found.items()
    )


def far_family_text(model_type: str) -> str:
    """Describe a model family's error on recent blind rows; '' if it is not above that of others."""
    error = FAR_FAMILIES.get(model_type)
    if error is None:
        return ""
    of_all = RECENT_BLIND_ERROR
    return (
        f"{error.median_ratio:.0%} / {error.p90_ratio:.0%} ({counted(error.rows, 'row')}), "
        f"that of all models {of_all.median_ratio:.0%} / {of_all.p90_ratio:.0%}"
    )
