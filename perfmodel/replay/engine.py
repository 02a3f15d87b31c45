"""Engines of continuous batching, which jump over runs of decode-only iterations.

Between two changes of its batch an engine repeats the same iteration with one more token of context in each
sequence: n of them take n t + a n (n-1) / 2. A run ends with the first sequence that does, with the next
arrival, or where the cache is full, so that the work of a simulation grows with the requests and not with
their tokens.

Rules, those of vLLM: an iteration gives every running sequence a token and fills its token budget with the
prompts that wait, in the order of their arrival, cut where the budget ends. A prompt is admitted when its
cache fits. Where the cache is full, the sequence that was admitted last loses its cache, and computes prompt
and generated tokens again, before all that wait. SGLang runs prompts in iterations of their own.

The loops are compiled (`fleetplan.perfmodel.replay.compiled`): half a second of loading, some seconds where
they were never compiled before, and then a tenth of what Python takes.
"""

from __future__ import annotations

from math import inf
from typing import Final

from fleetplan.perfmodel.interruption import checkpoint
from fleetplan.perfmodel.operators import IntArray
from fleetplan.perfmodel.replay.engine_state import (
    BatchRules,
    EngineLimits,
    PoolState,
    RequestLog,
)
from fleetplan.perfmodel.serving import Requests, StepCosts

_TURNS: Final = 5_000
"""Iterations between two looks at whether the time of a simulation is over: one or two milliseconds."""

_ARRIVALS: Final = 500
"""The same in arrivals."""


class PoolRun:
    """Equal engines, and the requests that they serve.

    Parameters
    ----------
    costs, limits
        Limits of each engine.
    requests : Requests
        All that are ever sent to them.
    count : int
        Number of the engines.
    prefilled : bool
        Whether prompts were computed elsewhere.
    released : int
        In a closed loop, how many requests follow the ends of others, on the engine that they leave; they are
        the last ones of `requests`.
    turnaround_ms : float
        From the end of a request to the arrival of the one that follows it. [ms]

    Attributes
    ----------
    state : PoolState
        The engines and the requests.
    """

    def __init__(
        self,
        costs: StepCosts,
        limits: EngineLimits,
        requests: Requests,
        count: int = 1,
        *,
        prefilled: bool = False,
        released: int = 0,
        turnaround_ms: float = 0.0,
    ) -> None:
        self.state = PoolState.idle(count, limits, requests, costs)
        self.state.engines["released"] = released
        # One type of each array, so that the loops are compiled once.
        self._rules = BatchRules(
            int(limits.sequences),
            int(limits.iteration_tokens),
            int(limits.kv_tokens),
            bool(limits.prompts_apart),
            int(limits.session_tokens),
            bool(prefilled),
            float(turnaround_ms),
            float(costs.prompt_floor_ms),
            float(costs.rebuilt_ms_per_token),
            float(costs.read_ms_per_token),
        )

    @property
    def log(self) -> RequestLog:
        """Log of each request so far."""
        return RequestLog.of(self.state.requests)

    def send(self, engine: int, requests: IntArray) -> None:
        """Send requests, in order, to an engine without other requests under way."""
        records, own = self.state.requests, self.state.engines[engine]
        if requests.size:
            records["follower"][requests[:-1]] = requests[1:]
            own["pending_first"], own["pending_last"] = requests[0], requests[-1]
            own["unfinished"] += requests.size

    def send_to_least_loaded(self) -> None:
        """Send every request to the engine with the fewest unfinished ones when it arrives.

        Requests of a session follow its first one.

        Raises
        ------
        ValueError
            A request is longer than the cache.
        WorkInterruptedError
            The time of an interruptible simulation is over.
        """
        count = self.state.requests.size
        for first in range(0, count, _ARRIVALS):
            self._run(first, min(first + _ARRIVALS, count), -inf)

    def run(self, until_ms: float = inf) -> None:
        """Run every iteration that starts before a time.

        Parameters
        ----------
        until_ms : float
            Not before that of an earlier call; all iterations by default. [ms]

        Raises
        ------
        ValueError
            A request is longer than the cache.
        WorkInterruptedError
            The time of an interruptible simulation is over.
        """
        while not self._run(0, 0, until_ms):
            pass

    def _run(self, first: int, last: int, until_ms: float) -> bool:
        """Whether engines have finished all work, not only the work until the next check."""
        from fleetplan.perfmodel.replay import compiled  # noqa: PLC0415

        checkpoint()
        status = compiled.run(first, last, float(until_ms), _TURNS, self._rules, self.state)
        if status in (compiled.TOO_LONG, compiled.OUTGROWN):
            raise ValueError(self._fault())
        return status == compiled.RAN

    def _fault(self) -> str:
        """Return the requests that an engine could not serve."""
        number = int(self.state.engines["fault"].max())
        request = self.state.requests[number]
        tokens = int(request["prefix_tokens"] + request["new_tokens"] + request["again"])
        cache = self._rules.kv_tokens
        if tokens < cache:
            return f"request {number} grows beyond the cache of {cache} tokens"
        return f"request {number} of {tokens} tokens is longer than the cache of {cache}"
