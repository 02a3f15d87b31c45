"""Data types of weights: stated, or stored in the checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fleetplan.fleet.catalog import UnknownModelError, model_catalog
from fleetplan.fleet.catalog.checkpoints import BF16, weights_of
from fleetplan.fleet.catalog.models import resolve
from fleetplan.fleet.document import KeyPath
from fleetplan.fleet.input_files import MAX_CONFIG_BYTES, is_file, parse_json, read_text
from fleetplan.fleet.resolve.context import Context


def stored_weights(model: str, checkpoint: str | None, folder: Path) -> str:
    """Return the default data type of the weights of a model.

    Parameters
    ----------
    model, checkpoint : str, str or None
        As in `weights_of`.
    folder : Path
        Folder that model paths are relative to.
    """
    return weights_of(model, checkpoint, _config(model, folder))


def _config(model: str, folder: Path) -> Mapping[str, object]:
    """Return the config of a model; empty if unreadable, which the reader of its shapes reports."""
    if not model.endswith(".json"):
        try:
            return model_catalog()[resolve(model)].config
        except UnknownModelError:
            return {}
    path = folder / model
    try:
        found = parse_json(read_text(path, MAX_CONFIG_BYTES)) if is_file(path) else {}
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, Mapping) else {}


def resolve_weights(
    context: Context, key_path: KeyPath, stated: str | None, model: str | None, checkpoint: str | None
) -> str:
    """Return the data type of the weights of a service or variant; warn of an assumed narrow type.

    Parameters
    ----------
    context : Context
        Receives the warning.
    key_path : KeyPath
        The service or variant.
    stated : str or None
        Value in the file.
    model : str or None
        Resolved model; None for an engine table.
    checkpoint : str or None
        Checkpoint to launch instead of the model's own.
    """
    if stated is not None:
        return stated
    if model is None:
        return BF16
    found = stored_weights(model, checkpoint, context.document.path.parent)
    if found != BF16:
        context.warn((*key_path, "precision"), f"weights are {found}, as {checkpoint or model} stores them")
    return found
