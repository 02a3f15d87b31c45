"""Data types of weights, stated or as the checkpoint stores them."""

from __future__ import annotations

from fleetplan.fleet.catalog.checkpoints import BF16, stored_weights
from fleetplan.fleet.document import KeyPath
from fleetplan.fleet.resolve.context import Context


def resolve_weights(
    context: Context, key_path: KeyPath, stated: str | None, model: str | None, checkpoint: str | None
) -> str:
    """Return the data type of the weights of a service or variant; a narrow one that is assumed is told.

    Parameters
    ----------
    context : Context
        Receives what is assumed.
    key_path : KeyPath
        The service or variant.
    stated : str or None
        What the file says.
    model : str or None
        As resolved; None for an engine table.
    checkpoint : str or None
        What is launched instead of the model's own checkpoint.
    """
    if stated is not None:
        return stated
    if model is None:
        return BF16
    found = stored_weights(model, checkpoint, context.document.path.parent)
    if found != BF16:
        context.warn((*key_path, "precision"), f"weights are {found}, as {checkpoint or model} stores them")
    return found
