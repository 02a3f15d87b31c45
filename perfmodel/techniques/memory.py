"""Effect of techniques on memory: shared caches, kept sessions, drafts, offload."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fleetplan.fleet.inventory import Techniques
from fleetplan.fleet.units import BYTES_PER_GIB
from fleetplan.perfmodel.architecture import ModelArchitecture
from fleetplan.perfmodel.operators import BYTES_PER_ELEMENT, FloatArray, IntArray
from fleetplan.perfmodel.parallelism import Layouts
from fleetplan.perfmodel.steps import MemoryUse, PartDtypes
from fleetplan.perfmodel.steps.memory import kv_gib_per_sequence
from fleetplan.perfmodel.techniques.offload import resident_weights_ratio
from fleetplan.perfmodel.techniques.session_cache import resident_gib


@dataclass(frozen=True, slots=True)
class HeldCache:
    """Caches of running sequences, each array of shape (n_configs,).

    Attributes
    ----------
    sequences : IntArray
        Tokens of one attention-DP rank in all micro-batches with a resident cache.
    kv_tokens, generated_tokens : IntArray
        Tokens whose cache a sequence holds, and how many of them it generated. [tokens]
    """

    sequences: IntArray
    kv_tokens: IntArray
    generated_tokens: IntArray


def running_kv_gib(
    architecture: ModelArchitecture,
    dtypes: PartDtypes,
    layouts: Layouts,
    held: HeldCache,
    techniques: Techniques,
    with_states: bool = True,
) -> FloatArray:
    """Return the cache of the running sequences on one accelerator, shape (n_configs,). [GiB].

    The shared prefix is there once; the samples of a prompt share the prompt.

    Parameters
    ----------
    architecture, dtypes, layouts, techniques
        As elsewhere.
    held : HeldCache
        Sequences and lengths.
    with_states : bool
        Whether recurrent states count.
    """

    def each(tokens: IntArray) -> FloatArray:
        return kv_gib_per_sequence(architecture, dtypes, layouts, np.maximum(tokens, 0), with_states)

    shared, samples = techniques.shared_prefix_tokens, techniques.samples_per_prompt
    if samples > 1:
        prompts = -(-held.sequences // samples)
        prompt_tokens = held.kv_tokens - held.generated_tokens - shared
        total = prompts * each(prompt_tokens) + held.sequences * each(held.generated_tokens)
    else:
        total = held.sequences * each(held.kv_tokens - shared)
    return total + each(np.full_like(held.kv_tokens, shared)) if shared else total


def session_gib(
    architecture: ModelArchitecture, dtypes: PartDtypes, prefix_tokens: IntArray, techniques: Techniques
) -> FloatArray:
    """Return the cache that one session keeps, over all layers, shape (n_configs,). [GiB]."""
    tokens = np.maximum(0, prefix_tokens - techniques.shared_prefix_tokens)
    return sequence_bytes(architecture, dtypes, tokens) / BYTES_PER_GIB


def sequence_bytes(architecture: ModelArchitecture, dtypes: PartDtypes, tokens: IntArray) -> FloatArray:
    """Return the cache of a sequence over all layers, in the shape of `tokens`. [bytes]."""
    distinct, codes = np.unique(tokens, return_inverse=True)
    size = BYTES_PER_ELEMENT[dtypes.kv]
    # Without tokens, there is no recurrent state to transfer.
    each = [architecture.kv_bytes_per_sequence(int(n), size) if n else 0.0 for n in distinct]
    found: FloatArray = np.array(each, dtype=np.float64)[codes.reshape(-1)].reshape(tokens.shape)
    return found


def with_techniques(
    use: MemoryUse,
    kv_gib: FloatArray,
    kept_sessions_gib: FloatArray,
    layers_per_stage: IntArray,
    techniques: Techniques,
) -> MemoryUse:
    """Return the memory with the caches under techniques, with drafts, and without offloaded parts.

    Parameters
    ----------
    use : MemoryUse
        Without any technique.
    kv_gib : FloatArray
        Cache of the running sequences. [GiB]
    kept_sessions_gib : FloatArray
        Cache of a session between its requests; 0 if no sessions are kept. [GiB]
    layers_per_stage : IntArray
        Layers of a pipeline stage.
    techniques : Techniques
        Techniques.
    """
    offload, speculative = techniques.offload, techniques.speculative
    weights = use.weights_gib * resident_weights_ratio(offload, layers_per_stage.astype(np.float64))
    if speculative is not None:
        weights = weights + speculative.draft_gib_per_accelerator
    running = kv_gib if offload is None else kv_gib * (1.0 - offload.kv_ratio)
    sessions = resident_gib(techniques.persistent_kv, kept_sessions_gib)
    return replace(use, weights_gib=weights, kv_gib=running + sessions)
