"""Drawing tokens from the most likely ones (top-k, top-p), as a step does it.

Benchmarks mostly use greedy decoding (temperature 0), which costs almost nothing. For a request without a
temperature, a server uses the defaults of the model, and those of Llama 3 and Qwen 3 set a top-p.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from fleetplan.fleet.inventory import Techniques
from fleetplan.perfmodel.operators import Operator, OperatorKind
from fleetplan.perfmodel.optables.formulas.token_sampling import SAMPLING_NS_PER_LOGIT
from fleetplan.perfmodel.steps import StepShape
from fleetplan.perfmodel.steps.parts import constant, counts
from fleetplan.perfmodel.techniques.record import Technique, TechniqueStep, choice


def sampling_operators(vocab_size: int, shape: StepShape, techniques: Techniques) -> Iterator[Operator]:
    """Yield the operators that sampling adds to a step; none for greedy decoding.

    Parameters
    ----------
    vocab_size : int
        Logits of a sequence.
    shape : StepShape
        Sequences of n configurations; a prompt draws its first token.
    techniques : Techniques
        Whether tokens are drawn.
    """
    if techniques.sampling == "greedy":
        return
    rows = shape.prefill_sequences + shape.decode_sequences
    dims = {"rows": rows, "vocab": constant(vocab_size, rows)}
    yield Operator("token_sampling", OperatorKind.TOKEN_SAMPLING, "bf16", dims, counts(1.0, rows))


def sampling_problem(framework: str, techniques: Techniques) -> str:
    """Return why a framework cannot be modelled with sampling; an empty string if it can."""
    if techniques.sampling == "greedy" or framework in SAMPLING_NS_PER_LOGIT:
        return ""
    known = " and ".join(sorted(SAMPLING_NS_PER_LOGIT))
    return f"sampling: the cost of top-p is known for {known} only, not for {framework}"


def _operators(operators: Iterable[Operator], step: TechniqueStep) -> Iterator[Operator]:
    yield from operators
    yield from sampling_operators(step.architecture.vocab_size, step.computed, step.techniques)


SAMPLING: Final = Technique(
    {"sampling": choice(("greedy", "top-p"))},
    problem=lambda _, framework, techniques: sampling_problem(framework, techniques),
    operators=_operators,
)
"""The record of the technique."""
