"""Speculative decoding: a draft proposes tokens, and one step of the model verifies all of them.

A step then works on `draft_tokens + 1` tokens a sequence but reads each sequence's cache once, and a
sequence gains as many tokens as were accepted, and one more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from fleetplan.fleet.inventory import SpeculativeDecoding, Techniques
from fleetplan.perfmodel.architecture import LinearAttention, ModelArchitecture
from fleetplan.perfmodel.operators import Operator, OperatorKind
from fleetplan.perfmodel.steps import StepShape
from fleetplan.perfmodel.techniques.record import GENERATING_MODES, LARGEST, Technique, number

_DECODE_ATTENTION: Final = frozenset({OperatorKind.DECODE_ATTENTION, OperatorKind.LATENT_DECODE_ATTENTION})


def tokens_per_step(speculative: SpeculativeDecoding | None) -> float:
    """Return the mean number of tokens per sequence and step: (1 - a^(d+1)) / (1 - a).

    Source: Leviathan, Kalman, Matias, "Fast Inference from Transformers via Speculative Decoding" (ICML
    2023), Equation 1, for d proposed tokens that are each accepted with chance a.
    """
    if speculative is None:
        return 1.0
    accepted, drafted = speculative.acceptance_ratio, speculative.draft_tokens
    # The sum of the series has no 0/0 at a = 1.
    return float(sum(accepted**position for position in range(drafted + 1)))


def step_cost_ratio(speculative: SpeculativeDecoding | None) -> float:
    """Return the time of a step with its drafts over that of the verifying step alone: 1 + d c."""
    if speculative is None:
        return 1.0
    return 1.0 + speculative.draft_tokens * speculative.draft_cost_ratio


def verified_tokens(techniques: Techniques) -> int:
    """Return the tokens of a sequence that one decode step computes."""
    return 1 if techniques.speculative is None else techniques.speculative.draft_tokens + 1


def verifying_shape(shape: StepShape, techniques: Techniques) -> StepShape:
    """Return the step with its verified tokens as separate sequences.

    All operators except attention see this step; `verifying_attention` corrects attention.
    """
    tokens = verified_tokens(techniques)
    return shape if tokens == 1 else replace(shape, decode_sequences=shape.decode_sequences * tokens)


def verifying_attention(operators: Iterable[Operator], techniques: Techniques) -> Iterator[Operator]:
    """Yield the operators with the cache of a sequence read once for all of its verified tokens.

    The queries of those tokens share keys and values, so to a kernel they are further heads of the same
    key-value heads.
    """
    tokens = verified_tokens(techniques)
    for operator in operators:
        if tokens > 1 and operator.kind in _DECODE_ATTENTION:
            dims = operator.dims
            batch = np.maximum(1, dims["batch"] // tokens)
            yield replace(operator, dims={**dims, "batch": batch, "heads": dims["heads"] * tokens})
        else:
            yield operator


def _switched(values: Mapping[str, Any]) -> dict[str, Any]:
    if "draft_tokens" not in values:
        return {}
    drafted = (values["draft_tokens"], values["acceptance_ratio"], values["draft_cost_ratio"])
    return {"speculative": SpeculativeDecoding(*drafted)}


def _problem(architecture: ModelArchitecture, framework: str, techniques: Techniques) -> str:
    recurrent = any(isinstance(group.attention, LinearAttention) for group in architecture.groups)
    if techniques.speculative is None or not recurrent:
        return ""
    return (
        f"speculative: {architecture.name} has recurrent layers, whose state cannot drop rejected "
        f"tokens; speculative decoding is not modelled for it"
    )


SPECULATIVE: Final = Technique(
    {
        "draft_tokens": number(1, 64, GENERATING_MODES, "acceptance_ratio", "draft_cost_ratio", whole=True),
        "acceptance_ratio": number(0, 1, GENERATING_MODES, "draft_tokens"),
        "draft_cost_ratio": number(0, LARGEST, GENERATING_MODES, "draft_tokens"),
    },
    _switched,
    problem=_problem,
    shape=verifying_shape,
    operators=lambda operators, step: verifying_attention(operators, step.techniques),
)
"""The record of the technique."""
