"""Data types that checkpoints store their weights in, from their names and configs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

BF16: Final = "bf16"

_BY_NAME: Final = (
    (re.compile(r"mxfp4", re.I), "mxfp4"),
    (re.compile(r"nvfp4|fp4", re.I), "fp4"),
    (re.compile(r"fp8", re.I), "fp8"),
    (re.compile(r"awq|gptq|int4|w4a16", re.I), "int4"),
    (re.compile(r"int8|w8a8|w8a16", re.I), "int8"),
    (re.compile(r"bf16", re.I), BF16),
)
"""Data types by the pattern that publishers write into the name of a checkpoint."""

_ONE_NAME: Final = {"fp8_block": "fp8", "bfloat16": BF16}
"""Data type of a fleet file by the data type in a checkpoint's config."""


def weights_by_name(checkpoint: str) -> str | None:
    """Return the data type in the name of a checkpoint; None if the name contains none."""
    name = checkpoint.rsplit("/", 1)[-1]
    return next((weights for pattern, weights in _BY_NAME if pattern.search(name)), None)


def as_stated(stored: str | None) -> str:
    """Return a stored data type as a fleet file writes it; None is BF16."""
    return BF16 if stored is None else _ONE_NAME.get(stored, stored)


def stored_dtype(quantisation: Mapping[str, object], expert_dtype: str | None = None) -> str | None:
    """Return the data type of a `quantization_config`, or None if it is ambiguous.

    A mixture of experts with four-bit experts has their data type, because experts are nearly all of its
    weights; `fleetplan.perfmodel.steps.precision` has the data types of its other parts.

    Parameters
    ----------
    quantisation : Mapping[str, object]
        The block of a config.json.
    expert_dtype : str or None
        Data type of routed experts outside the block (DeepSeek-V4): fp4 is MXFP4, unless the block names
        another format.
    """
    method = str(quantisation.get("quant_method", "unnamed"))
    if expert_dtype is not None:
        in_block = {"None": "mxfp4", "NVFP4": "fp4"}.get(str(quantisation.get("moe_quant_algo")))
        return in_block if (method, expert_dtype) == ("fp8", "fp4") else None
    if method == "fp8":
        return "fp8_block" if quantisation.get("weight_block_size") else "fp8"
    if method == "mxfp4":
        return "mxfp4"
    if method in {"awq", "gptq"} and quantisation.get("bits") == 4:
        return "int4"
    if method == "modelopt":
        return {"FP8": "fp8", "NVFP4": "fp4"}.get(str(quantisation.get("quant_algo")))
    return _compressed_tensors_dtype(quantisation) if method == "compressed-tensors" else None


def _compressed_tensors_dtype(quantisation: Mapping[str, object]) -> str | None:
    groups = quantisation.get("config_groups")
    if not isinstance(groups, Mapping) or len(groups) != 1:
        return None
    group = next(iter(groups.values()))
    weights = group.get("weights") if isinstance(group, Mapping) else None
    if not isinstance(weights, Mapping):
        return None
    known = {("int", 4): "int4", ("int", 8): "int8", ("float", 8): "fp8"}
    bits = weights.get("num_bits")
    if (weights.get("type"), bits) == ("float", 4):
        # Both have elements of four bits; the scales of NVFP4 are for 16 of them, those of MXFP4 for 32.
        return {16: "fp4", 32: "mxfp4"}.get(_whole(weights.get("group_size")))
    return known.get((str(weights.get("type")), bits if isinstance(bits, int) else 0))


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def weights_of(model: str, checkpoint: str | None, config: Mapping[str, object]) -> str:
    """Return the default data type of the weights of a model.

    Parameters
    ----------
    model : str
        An id or alias of the catalogue, or the path of a config.json.
    checkpoint : str or None
        Checkpoint to launch instead of the model's own.
    config : Mapping[str, object]
        The model's config.

    Returns
    -------
    str
        Data type in the name of the checkpoint, else in the model's name, else in the config, else BF16.
    """
    # A config file has no checkpoint, so its name contains no data type.
    names = [each for each in (checkpoint, model) if each is not None and not each.endswith(".json")]
    by_name = next((weights for each in names if (weights := weights_by_name(each)) is not None), None)
    return by_name or as_stated(_in_config(config))


def _in_config(config: Mapping[str, object]) -> str | None:
    inner = config.get("text_config")
    for each in (inner, config):
        found = each.get("quantization_config") if isinstance(each, Mapping) else None
        if isinstance(found, Mapping) and isinstance(each, Mapping):
            experts = each.get("expert_dtype")
            return stored_dtype(found, experts if isinstance(experts, str) else None)
    return None
