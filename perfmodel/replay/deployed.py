"""From a configuration of a service to what a simulation of it needs: its iterations, and its limits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.operators import FloatArray
from fleetplan.perfmodel.parallelism import Layouts, Parallelism
from fleetplan.perfmodel.replay.engine_state import EngineLimits
from fleetplan.perfmodel.serving import Range, StepCosts, default_scheduling, step_costs
from fleetplan.perfmodel.steps import MemoryUse, StepShape
from fleetplan.perfmodel.techniques.memory import session_gib
from fleetplan.perfmodel.techniques.session_cache import held_sessions
from fleetplan.perfmodel.techniques.speculative import tokens_per_step

_PROBED_TOKENS = 16_384
"""Cached tokens at which the cache of a token is measured: beyond the windows that some models have."""


@dataclass(frozen=True, slots=True)
class DeployedEngine:
    """One engine: an attention-DP rank and pipeline micro-batch of a replica.

    Attributes
    ----------
    costs : StepCosts
        Its iterations.
    limits : EngineLimits
        Its batch and its cache.
    tokens_per_step : float
        Tokens per sequence and iteration; above one with speculation.
    """

    costs: StepCosts
    limits: EngineLimits
    tokens_per_step: float


def deployed_engine(
    evaluator: Evaluator,
    parallelism: Parallelism,
    sequences: int,
    longest_tokens: int,
    framework: str,
    session_tokens: int = 0,
) -> DeployedEngine:
    """Return what simulates one engine of a configuration.

    Parameters
    ----------
    evaluator : Evaluator
        The model on its accelerator, with its techniques.
    parallelism : Parallelism
        Engines of a replica.
    sequences : int
        Batch of a rank and micro-batch.
    longest_tokens : int
        Tokens of the longest request, prefix and output included. [tokens]
    framework : str
        trtllm, sglang or vllm: whether prompts share iterations with decode.
    session_tokens : int
        Mean tokens that a session keeps between its requests; 0 without sessions. [tokens]
    """
    techniques = evaluator.techniques
    scheduling = default_scheduling(
        framework,
        evaluator.accelerator,
        evaluator.software_date,
        techniques.chunk_tokens,
        evaluator.overlaps_host,
    )
    chunk = scheduling.iteration_tokens
    costs = step_costs(evaluator, parallelism, Range(sequences, max(chunk, 1), longest_tokens))
    return DeployedEngine(
        costs,
        EngineLimits(
            sequences,
            max(chunk, sequences + 1),
            kv_token_capacity(evaluator, parallelism, sequences, chunk),
            prompts_apart=scheduling.admission.prompts_apart,
            session_tokens=_kept_tokens(evaluator, parallelism, session_tokens),
        ),
        tokens_per_step(techniques.speculative),
    )


def kv_token_capacity(
    evaluator: Evaluator, parallelism: Parallelism, sequences: int, prompt_tokens: int
) -> int:
    """Return the tokens in the cache of one engine, beside weights, activations and sessions. [tokens].

    Parameters
    ----------
    evaluator, parallelism
        The configuration.
    sequences, prompt_tokens : int
        Sequences and prompt tokens of the largest iteration, for its activations.
    """
    use, room_gib = _room(evaluator, Layouts.of([parallelism]), sequences, prompt_tokens)
    # The cache of all micro-batches in flight is counted, so this is the room of one of them.
    return max(0, int(float(room_gib[0]) / float(use.kv_gib[0]) * _PROBED_TOKENS))


def most_sequences(evaluator: Evaluator, parallelism: Parallelism, sequences: int, prompt_tokens: int) -> int:
    """Return how many of `sequences` one engine has slots for, where states have slots; at least one.

    Parameters
    ----------
    evaluator, parallelism, sequences, prompt_tokens
        As in `kv_token_capacity`.
    """
    layouts = Layouts.of([parallelism])
    _, room_gib = _room(evaluator, layouts, sequences, prompt_tokens)
    return int(np.clip(evaluator.most_states(layouts, room_gib)[0], 1, sequences))


def _room(
    evaluator: Evaluator, layouts: Layouts, sequences: int, prompt_tokens: int
) -> tuple[MemoryUse, FloatArray]:
    """Return the memory with one sequence, and the memory for caches, shape (1,). [GiB]."""

    def one(value: int) -> np.ndarray:
        return np.array([value], dtype=np.int64)

    shape = StepShape(layouts, one(1), one(prompt_tokens), one(0), one(sequences), one(_PROBED_TOKENS))
    use = evaluator.memory(shape, one(1), one(_PROBED_TOKENS), one(0))
    return use, use.capacity_gib - use.without_kv_gib


def _kept_tokens(evaluator: Evaluator, parallelism: Parallelism, session_tokens: int) -> int:
    """Return the tokens of ended sessions that the tiers of one engine keep. [tokens]."""
    persistent = evaluator.techniques.persistent_kv
    if persistent is None or session_tokens < 1:
        return 0
    tokens = np.array([session_tokens], dtype=np.int64)
    each_gib = session_gib(evaluator.architecture, evaluator.dtypes, tokens, evaluator.techniques)
    held = sum(float(sessions[0]) for sessions in held_sessions(persistent, each_gib))
    accelerators = parallelism.accelerators / parallelism.dp / parallelism.pp
    return int(held * accelerators * session_tokens)
