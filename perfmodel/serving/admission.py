"""Admission of requests into the batch: delays between an arrival and its first iteration.

Iterations are launched before the one that runs has ended, so that nothing waits for the host: a request that
arrives meanwhile finds the next iteration already made up, and joins the one after. SGLang's
`--scheduler-recv-interval` looks for new requests only every so many decode iterations: they wait for half of
them in the mean. TensorRT-LLM's `batch_wait_timeout_iters` lets the first prompt that waits gather others for
so many iterations W; with x arrivals an iteration it waits for W, those that join it for half of it::

    E[wait] = W (1 + x W / 2) / (1 + x W)

and in both cases all that have come are computed together.

Sources: vLLM's `--async-scheduling`, and the overlap schedulers of SGLang and TensorRT-LLM, on by default;
SGLang's server arguments and `SchedulerRecvSkipper` (a decode iteration counts one, one with prompts 1,000,
which ends any shorter interval); TensorRT-LLM's `TorchLlmArgs.batch_wait_timeout_iters`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.perfmodel.operators import FloatArray


@dataclass(frozen=True, slots=True)
class Admission:
    """Rules of one engine.

    Attributes
    ----------
    iterations_ahead : float
        Iterations that are made up before the one that runs has ended.
    polled_iterations : float
        From one look at new requests to the next; 1 is a look before each.
    gathering_iterations : float
        For which the first prompt that waits gathers others; 0 is none.
    prompts_apart : bool
        Whether prompts run in separate iterations before any decoding, as in SGLang.
    prompts_aligned : bool
        Whether attention-DP ranks wait with their prompts for one another (SGLang's
        `--enable-prefill-delayer`).
    """

    iterations_ahead: float = 0.0
    polled_iterations: float = 1.0
    gathering_iterations: float = 0.0
    prompts_apart: bool = False
    prompts_aligned: bool = False

    def wait_iterations(self, starts: FloatArray) -> FloatArray:
        """Return the mean wait beyond the iteration that runs at the arrival, shape (n,). [iterations].

        Parameters
        ----------
        starts : FloatArray
            Requests an iteration, shape (n,).
        """
        gathered = starts * self.gathering_iterations
        gathering = self.gathering_iterations * (1 + gathered / 2) / (1 + gathered)
        found: FloatArray = self.iterations_ahead + (self.polled_iterations - 1) / 2 + gathering
        return found

    @property
    def joint_iterations(self) -> float:
        """Iterations whose arrivals are computed together. [iterations]."""
        return float(np.maximum(self.polled_iterations, self.gathering_iterations))


EVERY_ITERATION: Final = Admission()
"""Prompts join the next iteration after their arrival."""
