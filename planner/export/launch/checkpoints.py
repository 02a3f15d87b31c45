"""Choose the checkpoint to launch, and the options that give it the planned precision."""

from __future__ import annotations

from fleetplan.fleet.catalog.checkpoints import BF16, as_stated, weights_by_name, weights_of
from fleetplan.fleet.catalog.models import UnknownModelError, model_catalog, resolve
from fleetplan.planner.export.launch.deployments import LaunchedGroup
from fleetplan.planner.export.launch.tools import tools


class RefusedError(ValueError):
    """A framework cannot start the planned configuration; the message states why."""


def launched(deployment: LaunchedGroup) -> str:
    """Return the checkpoint that a deployment launches.

    Raises
    ------
    RefusedError
        The model file only states shapes, and no checkpoint is named.
    """
    variant = deployment.variant
    named = variant.model if variant.checkpoint is None else variant.checkpoint
    if not named:
        raise RefusedError(f"{variant.model} states only shapes: name the model to launch in `checkpoint`")
    return named


def stored_weights(deployment: LaunchedGroup) -> str | None:
    """Return the stored data type of a checkpoint; None for a user's own with an uninformative name."""
    named = launched(deployment)
    if (by_name := weights_by_name(named)) is not None:
        return by_name
    if not deployment.variant.checkpoint:
        return as_stated(deployment.facts.stored_weights)
    try:
        published = model_catalog()[resolve(named)]
    except UnknownModelError:
        return None
    # A quantised copy shares the shapes of the original, but only its name could state its weights.
    copies = named.lower() not in {each.lower() for each in (published.name, *published.aliases)}
    return None if copies else weights_of(named, None, published.config)


def chooses_tokens(deployment: LaunchedGroup) -> bool:
    """Return whether the model's published config has an indexer that selects tokens for queries."""
    try:
        published = model_catalog()[resolve(deployment.variant.model)]
    except UnknownModelError:
        return False
    return "index_topk" in published.config


def unsaid_weights(deployment: LaunchedGroup) -> str | None:
    """Return a note if nothing states the stored weights of a checkpoint; None if they are known or BF16."""
    planned = deployment.variant.weights
    if planned == BF16 or stored_weights(deployment) is not None:
        return None
    return f"{launched(deployment)} must store weights in {planned}, which its name does not say"


def online_quantisation(deployment: LaunchedGroup, framework: str) -> str | None:
    """Return the data type to which the framework quantises the checkpoint at load, or None.

    Raises
    ------
    RefusedError
        The framework would start with other weights than planned.
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
    """Return the options of vLLM or SGLang for the data types of weights and cache; both use the same names.

    Raises
    ------
    RefusedError
        The framework would start with other weights than planned.
    """
    online = online_quantisation(deployment, framework)
    words = [] if online is None else ["--quantization", online]
    if deployment.variant.weights == BF16:
        words += ["--dtype", "bfloat16"]
    kv = tools().framework(framework).kv.get(deployment.variant.kv)
    return words if kv is None else [*words, "--kv-cache-dtype", kv]
