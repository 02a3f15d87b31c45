"""Model architectures: from a catalogue name or a Hugging Face `config.json` to a decoder's shapes."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from fleetplan.fleet.catalog import UnknownModelError, model_catalog
from fleetplan.fleet.catalog.checkpoints import stored_dtype
from fleetplan.fleet.catalog.models import resolve
from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.input_files import MAX_CONFIG_BYTES, NotTextError, is_file, parse_json, read_text
from fleetplan.perfmodel.architecture.decoder import ModelArchitecture, NativeQuantisation
from fleetplan.perfmodel.architecture.encoder import vision_encoder
from fleetplan.perfmodel.architecture.hf.families import FAMILIES, WRAPPERS
from fleetplan.perfmodel.architecture.hf.family import SHAPE_KEYS, ModelFamily
from fleetplan.perfmodel.architecture.hf.mistral_params import as_hugging_face, is_params
from fleetplan.perfmodel.architecture.hf.reader import ConfigReader
from fleetplan.perfmodel.architecture.layers import LayerGroup

DRAFT_LAYER_KEYS: Final = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules")
"""Keys that count layers which only draft tokens; ordinary decoding does not run them."""

TOWERS: Final = {"vision_config": "vision tower", "audio_config": "audio tower"}
"""Parts that turn images or sound into tokens, by the key of the config that describes them."""

MOST_PARAMETERS: Final = 10**15
"""Most weights of a model; the largest published ones have some 1e12, and 64-bit counts of bytes hold."""


def load_architecture(reference: str, folder: Path) -> ModelArchitecture:
    """Return the architecture of a model that a user names.

    Parameters
    ----------
    reference : str
        HF id or alias of the catalogue, or the path of a `config.json` (or of the folder that holds it),
        relative to `folder`.
    folder : Path
        Folder of relative paths: that of the file that names the model.

    Returns
    -------
    ModelArchitecture
        Named after the HF id, or after the path as given.

    Raises
    ------
    UnknownModelError
        Neither the catalogue nor the file system knows the reference (an `InputError`).
    InputError
        The config is unreadable.
    UnsupportedArchitecture
        It describes a decoder that is not understood.
    """
    path = folder / reference
    if is_file(path / "config.json"):
        path /= "config.json"
    if is_file(path):
        return architecture_from_config(_read_config(path), reference)
    try:
        identifier = resolve(reference)
    except UnknownModelError:
        if _exists(path):
            # A pipe, a device, or a folder without a config: why it cannot be read is said by the reader.
            return architecture_from_config(_read_config(path), reference)
        raise
    return _of_catalogue(identifier)


@cache
def _of_catalogue(identifier: str) -> ModelArchitecture:
    return architecture_from_config(model_catalog()[identifier].config, identifier)


def architecture_from_config(config: Mapping[str, object], name: str) -> ModelArchitecture:
    """Return the architecture of a Hugging Face config.

    Parameters
    ----------
    config : Mapping[str, object]
        The parsed `config.json`.
    name : str
        HF id, or what the user calls the model.

    Returns
    -------
    ModelArchitecture
        Equal layers are one group, in the order in which each shape first appears.

    Raises
    ------
    UnsupportedArchitecture
        The `model_type`, or a key that changes shapes, is unknown; nothing is guessed.
    """
    reader, left_out = _decoder(config, name)
    family = FAMILIES.get(reader.model_type)
    if family is None:
        known = ", ".join(sorted(FAMILIES | WRAPPERS))
        reader.refuse(f"no such model_type is understood (known: {known})")
    reader = family.renamed(reader)
    for key in sorted(SHAPE_KEYS - family.reads):
        if reader.has(key):
            reader.refuse(f"{key!r} is not understood in this family")
    layers = Counter(family.layers(reader))
    if any(reader.has(key) for key in DRAFT_LAYER_KEYS):
        left_out = (*left_out, "draft layers")
    found = ModelArchitecture(
        name=name,
        model_type=reader.model_type,
        hidden_size=reader.count("hidden_size"),
        vocab_size=reader.count("vocab_size"),
        tied_embeddings=_tied(reader, config, family),
        groups=tuple(LayerGroup(count, attention, ffn) for (attention, ffn), count in layers.items()),
        max_context_tokens=reader.optional_count("max_position_embeddings"),
        quantisation=_quantisation(reader, config),
        left_out=left_out,
        parallel_blocks=family.parallel_blocks(reader),
        residual_block_layers=reader.switched_count("attn_res_block_size") or 0,
        vision=vision_encoder(config, name, reader.count("hidden_size")),
        residual_streams=family.residual_streams(reader),
    )
    encoder = 0 if found.vision is None else found.vision.weights
    if found.total_parameters + encoder > MOST_PARAMETERS:
        reader.refuse(f"it has more than {MOST_PARAMETERS:.0e} parameters")
    return found


def _decoder(config: Mapping[str, object], name: str) -> tuple[ConfigReader, tuple[str, ...]]:
    """Return the decoder's part of a config, and what the rest of it describes."""
    if is_params(config):
        config = as_hugging_face(config, name)
    outer = ConfigReader(name, str(config.get("model_type", "")), config)
    if not outer.model_type:
        outer.refuse("its config lacks 'model_type'")
    if outer.model_type not in WRAPPERS:
        return outer, ()
    towers = tuple(tower for key, tower in TOWERS.items() if config.get(key))
    text = config.get("text_config")
    if text is None:
        return outer, towers
    if not isinstance(text, Mapping):
        outer.refuse("'text_config' must be a mapping")
    inner_type = str(text.get("model_type") or WRAPPERS[outer.model_type])
    # What a wrapper sees is no secret where its config says nothing of the tower.
    return ConfigReader(name, inner_type, text), towers or ("vision tower",)


def _tied(reader: ConfigReader, config: Mapping[str, object], family: ModelFamily) -> bool:
    """Return what the decoder's part says, else the whole config, else the family's default."""
    outer = ConfigReader(reader.model, reader.model_type, config)
    stated = outer.flag("tie_word_embeddings", absent=family.tied_by_default)
    return reader.flag("tie_word_embeddings", absent=stated)


def _quantisation(reader: ConfigReader, config: Mapping[str, object]) -> NativeQuantisation | None:
    """Return the data type of weights in the checkpoint; only if the config is unambiguous."""
    entry = reader.values.get("quantization_config") or config.get("quantization_config")
    if entry is None:
        return None
    if not isinstance(entry, Mapping):
        reader.refuse("'quantization_config' must be a mapping")
    experts = reader.text("expert_dtype")
    return NativeQuantisation(str(entry.get("quant_method", "unnamed")), stored_dtype(entry, experts))


def _exists(path: Path) -> bool:
    """Whether a path exists; an invalid name does not."""
    return os.path.exists(path)  # noqa: PTH110 - Path.exists raises for a name that is too long


def _read_config(path: Path) -> Mapping[str, object]:
    try:
        config = parse_json(read_text(path, MAX_CONFIG_BYTES))
    except json.JSONDecodeError as error:
        issue = Issue(str(path), error.lineno, error.colno, "", f"no valid JSON: {error.msg}")
        raise InputError([issue]) from error
    except OSError as error:
        raise InputError([Issue(str(path), 0, 0, "", f"cannot be read: {error.strerror}")]) from error
    except NotTextError as error:
        raise InputError([Issue(str(path), 0, 0, "", f"cannot be read: {error}")]) from error
    if not isinstance(config, dict):
        raise InputError([Issue(str(path), 1, 1, "", "a model config must be a JSON object")])
    return config
