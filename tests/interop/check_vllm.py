"""Holds vLLM's own parser and configuration checks to commands; runs in the interop environment, on a CPU.

Usage: python check_vllm.py < cases.json > verdicts.json. A case has `words` (after `vllm serve`), `config`
(the model's config.json) and `capability` (CUDA compute capability). What cannot be had without a GPU is
stood in for: the card, the compiled kernels, and what vLLM would read off the model's class, that of a text
decoder.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import sys
import types

os.environ |= {"VLLM_LOGGING_LEVEL": "ERROR", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
KERNELS = ("_C", "_moe_C", "_C_stable_libtorch", "_moe_C_stable_libtorch", "cumem_allocator")
for name in (*KERNELS, "vllm_flash_attn._vllm_fa2_C", "vllm_flash_attn._vllm_fa3_C"):
    sys.modules[f"vllm.{name}"] = types.ModuleType(f"vllm.{name}")
# Kernels that Triton builds at import, which needs a driver; the connector of caches imports them by the way.
mixer = "vllm.model_executor.layers.mamba.mamba_mixer2"
sys.modules[mixer] = types.ModuleType(mixer)
sys.modules[mixer].share_replayssm_ring_trackers = lambda *arguments: None

import vllm.platforms
import vllm.platforms.cuda
from vllm.platforms.interface import DeviceCapability


class Card(vllm.platforms.cuda.CudaPlatformBase):
    """Eight cards of a capability, as a host would report them."""

    capability = (9, 0)

    @classmethod
    def get_device_capability(cls, device_id=0):
        return DeviceCapability(*cls.capability)

    @classmethod
    def get_device_name(cls, device_id=0):
        return "NVIDIA stand-in"

    @classmethod
    def get_device_total_memory(cls, device_id=0):
        return 80 * 2**30

    @classmethod
    def device_count(cls):
        return 8

    @classmethod
    def is_fully_connected(cls, physical_device_ids):
        return True


vllm.platforms._current_platform = Card()

import vllm.config.vllm

# Triton is there where a card is; without it vLLM takes the older of its two model runners.
vllm.config.vllm.HAS_TRITON = True

import vllm._custom_ops as kernels

for name in dir(kernels):
    if "supports" in name or "is_supported" in name:
        setattr(kernels, name, lambda *arguments, **options: True)

from verdicts import checkpoint, draft, write_verdicts
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.entrypoints.common.cli_args import make_arg_parser, validate_parsed_serve_args
from vllm.model_executor.models import registry
from vllm.utils.argparse_utils import FlexibleArgumentParser


def _decoder(lazy):
    yes = {"is_text_generation_model", "supports_pp", "supports_lora"}
    words = {
        "architecture": lazy.class_name,
        "attn_type": "decoder",
        "default_seq_pooling_type": "LAST",
        "default_tok_pooling_type": "ALL",
        "score_type": "bi-encoder",
        "supported_video_pruning_methods": (),
    }
    names = [field.name for field in dataclasses.fields(registry._ModelInfo)]
    return registry._ModelInfo(**{name: words.get(name, name in yes) for name in names})


registry._LazyRegisteredModel.inspect_model_cls = _decoder


def _check_connector(config):
    """Refuse what the connector of caches refuses, which is made after the engine (kv_connector/v1)."""
    transfer, parallel = config.kv_transfer_config, config.parallel_config
    if transfer is None:
        return
    if transfer.kv_role == "kv_both":
        raise ValueError("kv_role='kv_both' with NixlConnector is deprecated")
    shares = max(parallel.prefill_context_parallel_size, parallel.decode_context_parallel_size) > 1
    if transfer.kv_connector == "MooncakeConnector":
        # It has no ranks that share contexts, and says nothing of it.
        if shares:
            raise ValueError("MooncakeConnector knows no ranks that share contexts")
        return
    if parallel.prefill_context_parallel_size > 1 and transfer.kv_role != "kv_producer":
        raise ValueError("NixlConnector PCP currently supports kv_producer only")
    if parallel.pipeline_parallel_size > 1 and transfer.kv_role == "kv_consumer":
        raise ValueError("NixlPushConnector consumer (decode) does not support pipeline_parallel_size > 1")
    if parallel.pipeline_parallel_size > 1 and transfer.kv_connector != "NixlPushConnector":
        raise ValueError("a consumer that pulls reads the first pipeline stage alone")


def verdict(case):
    """Return how vLLM parses a command, or why it refuses it."""
    Card.capability = tuple(case["capability"])
    parser = make_arg_parser(FlexibleArgumentParser())
    named, *options = case["words"]
    with contextlib.ExitStack() as folders:
        folder = folders.enter_context(checkpoint(case["config"]))
        for place, word in enumerate(options):
            if options[place - 1] == "--speculative-config" and "model" in (asked := json.loads(word)):
                asked["model"] = folders.enter_context(draft(case["config"]))
                options[place] = json.dumps(asked)
        arguments = parser.parse_args([folder, *options, "--skip-tokenizer-init"])
        arguments.model = arguments.model_tag
        validate_parsed_serve_args(arguments)
        engine = AsyncEngineArgs.from_cli_args(arguments)
        config = engine.create_engine_config(headless=bool(getattr(arguments, "headless", False)))
    if config.parallel_config.prefill_context_parallel_size > 1 and not config.model_config.use_mla:
        # vllm/v1/worker/cp_utils.py asks the layers of a loaded model, which there are none of.
        raise ValueError("PCP requires attention backend support: of latent attention alone")
    _check_connector(config)
    parallel, scheduler, cache = config.parallel_config, config.scheduler_config, config.cache_config
    transfer, drafts = config.kv_transfer_config, config.speculative_config
    return {
        "checkpoint": named,
        "tp": parallel.tensor_parallel_size,
        "pp": parallel.pipeline_parallel_size,
        "dp": parallel.data_parallel_size,
        "accelerators": parallel.world_size * parallel.data_parallel_size,
        "experts": parallel.enable_expert_parallel,
        # Ranks of attention data parallelism may meet without a number of hosts: by how many are on each.
        "hosts": max(
            parallel.nnodes, parallel.data_parallel_size // max(1, parallel.data_parallel_size_local)
        ),
        "weights": config.model_config.quantization,
        "kv": cache.cache_dtype,
        "longest": config.model_config.max_model_len,
        "sequences": scheduler.max_num_seqs,
        "chunked": scheduler.enable_chunked_prefill,
        "tokens": scheduler.max_num_batched_tokens,
        "prefix_caching": cache.enable_prefix_caching,
        "transfer": transfer is not None,
        "drafted": 0 if drafts is None else drafts.num_speculative_tokens,
    }


write_verdicts(verdict)
