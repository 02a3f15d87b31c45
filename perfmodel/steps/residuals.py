"""Attention over the residuals of earlier blocks of layers (Kimi-K3): traffic of activations alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fleetplan.perfmodel.architecture import ModelArchitecture
from fleetplan.perfmodel.operators import Operator
from fleetplan.perfmodel.steps.parts import elementwise
from fleetplan.perfmodel.steps.shapes import StepShape

MIXES_PER_LAYER: Final = 2
"""Residuals are mixed before the attention and before the feed-forward block of a layer. Source:
aiconfigurator-core 0.12.0, sdk/models/kimi_k3.py."""


def residual_mixing(architecture: ModelArchitecture, shape: StepShape) -> Iterator[Operator]:
    """Yield the weighted sums of the residuals of earlier blocks; none if outputs are added up.

    A mix reads the complete blocks and the growing one, on average half of all blocks, and writes one row.
    """
    blocks = architecture.residual_blocks
    if blocks:
        elements = (blocks + 3) * shape.share_tokens * architecture.hidden_size // 2
        yield elementwise("residual_mixing", elements, MIXES_PER_LAYER * architecture.layer_count)
