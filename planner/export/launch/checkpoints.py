"""Which checkpoint is launched, and what makes its weights those that were planned."""

from __future__ import annotations

import re
from typing import Final

from fleetplan.planner.export.launch.deployments import LaunchedGroup
from fleetplan.planner.export.launch.tools import tools

STORED_BY_NAME: Final = (
    (re.compile(r"mxfp4", re.I), "mxfp4"),
    (re.compile(r"nvfp4|fp4", re.I), "fp4"),
    (re.compile(r"fp8", re.I), "fp8"),
    (re.compile(r"awq|gptq|int4|w4a16", re.I), "int4"),
    (re.compile(r"int8|w8a8|w8a16", re.I), "int8"),
)
"""Data type that publishers write into the name of a quantised checkpoint."""

FAMILIES: Final = {"fp8_block": "fp8", "bfloat16": "bf16"}
"""Data types of a checkpoint that a plan knows under one name."""

BF16: Final = "bf16"


class RefusedError(ValueError):
    """A framework cannot start what was planned; the message says why."""


def launched(deployment: LaunchedGroup) -> str:
    """Return the checkpoint that a deployment launches.

    Raises
    ------
    RefusedError
        The model is a file of shapes, and no checkpoint is named.
    """
    variant = deployment.variant
    named = variant.model if variant.checkpoint is None else variant.checkpoint
    if not named:
        raise RefusedError(f"{variant.model} states only shapes: name the model to launch in `checkpoint`")
    return named


def stored_weights(deployment: LaunchedGroup) -> str | None:
    """Return the data type that a checkpoint stores; None where its name says nothing and it is one's own."""
    variant = deployment.variant
    named = launched(deployment)
    for pattern, weights in STORED_BY_NAME:
        if pattern.search(named.rsplit("/", 1)[-1]):
            return weights
    if variant.checkpoint:
        return None
    stored = deployment.facts.stored_weights or BF16
    return FAMILIES.get(stored, stored)


def online_quantisation(deployment: LaunchedGroup, framework: str) -> str | None:
    """Return what the framework quantises the checkpoint to as it loads it; None for nothing.

    Raises
    ------
    RefusedError
        It would start with other weights than those that were planned.
    """
    planned, stored, named = deployment.variant.weights, stored_weights(deployment), launched(deployment)
    online = tools().framework(framework).online_weights.get(planned)
    if stored is None or stored == planned:
        return None
    if stored == BF16 and online is not None:
        return online
    raise RefusedError(
        f"planned with weights in {planned}, but {named} stores {stored}, and {framework} would start with "
        f"those: name a checkpoint in {planned} (`checkpoint` of the service or its variant)"
    )


def precision_options(deployment: LaunchedGroup, framework: str) -> list[str]:
    """Return the options of vLLM or SGLang for the data types of weights and cache, which both name alike.

    Raises
    ------
    RefusedError
        It would start with other weights than those that were planned.
    """
    online = online_quantisation(deployment, framework)
    words = [] if online is None else ["--quantization", online]
    if deployment.variant.weights == BF16:
        words += ["--dtype", "bfloat16"]
    kv = tools().framework(framework).kv.get(deployment.variant.kv)
    return words if kv is None else [*words, "--kv-cache-dtype", kv]
