"""Data types of weights, stated or as the checkpoint stores them."""

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
    """Return the data type of weights that is served where nothing states one.

    Parameters
    ----------
    model, checkpoint : str, str or None
        As in `weights_of`.
    folder : Path
        Which paths of models are relative to.
    """
    return weights_of(model, checkpoint, _config(model, folder))


def _config(model: str, folder: Path) -> Mapping[str, object]:
    """The config of a model; empty where it cannot be read, which the reader of its shapes explains."""
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
