"""Which checkpoint is launched, and what makes its weights those that were planned."""

from __future__ import annotations

from fleetplan.fleet.catalog.checkpoints import BF16, as_stated, weights_by_name, weights_of
from fleetplan.fleet.catalog.models import UnknownModelError, model_catalog, resolve
from fleetplan.planner.export.launch.deployments import LaunchedGroup
from fleetplan.planner.export.launch.tools import tools


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
    named = launched(deployment)
    if (by_name := weights_by_name(named)) is not None:
        return by_name
    if not deployment.variant.checkpoint:
        return as_stated(deployment.facts.stored_weights)
    try:
        published = model_catalog()[resolve(named)]
    except UnknownModelError:
        return None
    # A quantised copy has the shapes of the original, and weights that its name alone could tell.
    copies = named.lower() not in {each.lower() for each in (published.name, *published.aliases)}
    return None if copies else weights_of(named, None, published.config)


def chooses_tokens(deployment: LaunchedGroup) -> bool:
    """Return whether an indexer chooses the tokens that queries see, as the model's published config says."""
    try:
        published = model_catalog()[resolve(deployment.variant.model)]
    except UnknownModelError:
        return False
    return "index_topk" in published.config


def unsaid_weights(deployment: LaunchedGroup) -> str | None:
    """Return what to see to where nothing says what a checkpoint stores; None where it is known or BF16."""
    planned = deployment.variant.weights
    if planned == BF16 or stored_weights(deployment) is not None:
        return None
    return f"{launched(deployment)} must store weights in {planned}, which its name does not say"


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
