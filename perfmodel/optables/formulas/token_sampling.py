"""Time to sample tokens (top-k, top-p) instead of taking the likeliest.

No table has it. Sampling runs for every sequence of a step over the whole vocabulary on every accelerator, so
more tensor parallelism does not shorten it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fleetplan.fleet.units import NS_PER_MS
from fleetplan.perfmodel.operators import FloatArray, IntArray

SAMPLING_NS_PER_LOGIT: Final = {"sglang": 0.136, "vllm": 0.0159}
"""Time to draw a token, for every logit of the vocabulary. [ns] vLLM draws by FlashInfer: 0.267 ms for 128
sequences of 131,072 logits with top-k and top-p (vLLM pull request 40376, April 2026); `SORTED_NS_PER_LOGIT`
and `TRITON_NS_PER_LOGIT` are those of older versions. SGLang draws by FlashInfer: slope, with the batch, of
what TPOT of Qwen3-32B on H100 (SGLang 0.5.1, tensor parallelism 2 to 8, aiconfigurator-core 0.12.0
silicon_sample.csv) exceeds its prediction by; that of Llama-3.1-8B on H200 (SGLang 0.5.6), which was
left out, is 0.11 to 0.14. It holds what the host does for a sequence as well."""

SORTED_NS_PER_LOGIT: Final = 0.2146
"""Of vLLM until March 2026, which sorts all logits: 57.59 ms for 2,048 sequences of 131,072 logits with top-k
and top-p (vLLM pull request 32234, January 2026). [ns] It says 28 to 33 us a sequence; the steps of
ML.ENERGY's six dense models, which sample with top-p under vLLM 0.11.1 on H100, grow by 24 to 39 us a
sequence (Qwen3-32B by 52) more than greedy ones should."""

TRITON_NS_PER_LOGIT: Final = 0.030
"""Of vLLM from March 2026 until FlashInfer became its default: 2.013 ms for 512 sequences of 131,072 logits
with top-p by the Triton kernel of pull request 33538 (measured in pull request 40376). [ns]"""


def sampling_ms(framework: str, dims: dict[str, IntArray]) -> FloatArray:
    """Return the time of drawing a token for each of `rows` sequences, shape (n_configs,), in ms.

    Raises
    ------
    KeyError
        Nothing is known of the framework; see `SAMPLING_NS_PER_LOGIT`.
    """
    logits = dims["rows"].astype(np.float64) * dims["vocab"]
    time: FloatArray = logits * SAMPLING_NS_PER_LOGIT[framework] / NS_PER_MS
    return time
