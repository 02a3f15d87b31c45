"""Serving techniques: what each changes in a step, in memory, or in how prompts are batched.

In: the step without it. Out: the step with it: chunked prefill, speculative decoding, prefix sharing, session
caches, offload, expert routing, KV transfer, sampling. `technique_problem` and `sampling_problem` say why a
model cannot use one. `evaluator` applies them.
"""

from fleetplan.perfmodel.techniques.limits import technique_problem
from fleetplan.perfmodel.techniques.sampling import sampling_problem

__all__ = ["sampling_problem", "technique_problem"]
