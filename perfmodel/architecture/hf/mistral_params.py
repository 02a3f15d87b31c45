"""Mistral's own form of a config, `params.json`, as a Hugging Face config.

Keys and their meaning: vLLM, vllm/transformers_utils/configs/mistral.py (vllm-project/vllm@01da88c).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fleetplan.perfmodel.architecture.hf.reader import UnsupportedArchitecture

_NAMES: Final = {
    "dim": "hidden_size",
    "hidden_dim": "intermediate_size",
    "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads",
    "n_layers": "num_hidden_layers",
    "tied_embeddings": "tie_word_embeddings",
}

_EXPERT_NAMES: Final = {
    "expert_hidden_dim": "moe_intermediate_size",
    "first_k_dense_replace": "first_k_dense_replace",
    "num_experts": "n_routed_experts",
    "num_experts_per_tok": "num_experts_per_tok",
    "num_shared_experts": "n_shared_experts",
    "route_every_n": "moe_layer_freq",
}

_TOWERS: Final = {"vision_encoder": "vision_config"}


def is_params(config: Mapping[str, object]) -> bool:
    """Whether a config is in Mistral's own form."""
    return "model_type" not in config and {"dim", "n_layers"} <= config.keys()


def as_hugging_face(config: Mapping[str, object], name: str) -> dict[str, object]:
    """Return the same model in the form of Hugging Face.

    Parameters
    ----------
    config : Mapping[str, object]
        The parsed `params.json`.
    name : str
        What the user calls the model.

    Raises
    ------
    UnsupportedArchitecture
        Its experts, windows or encoders are in a form that is not understood.
    """
    decoder = {_NAMES.get(key, key): value for key, value in config.items() if key not in {*_TOWERS, "moe"}}
    experts = config.get("moe")
    if config.get("sliding_window") or config.get("multimodal"):
        key = "sliding_window" if config.get("sliding_window") else "multimodal"
        raise UnsupportedArchitecture(name, "params.json", f"{key!r} is not understood in this form")
    if experts is None:
        decoder["model_type"] = "mistral"
    elif isinstance(experts, Mapping) and experts.get("num_shared_experts") and config.get("kv_lora_rank"):
        decoder |= {new: experts[old] for old, new in _EXPERT_NAMES.items() if old in experts}
        decoder["model_type"] = "deepseek_v3"
    else:
        raise UnsupportedArchitecture(name, "params.json", "experts in this form are not understood")
    towers = {new: config[old] for old, new in _TOWERS.items() if config.get(old)}
    # The wrapper says no more than that there is a tower: its decoder is that of the inner type.
    return {"model_type": "mistral3", "text_config": decoder, **towers} if towers else decoder
