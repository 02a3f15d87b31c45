"""The encoder that turns images into tokens of a prompt: a transformer over patches, and a projection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fleetplan.fleet.figures import counted
from fleetplan.perfmodel.architecture.hf.reader import ConfigReader

MEGAPIXEL_PATCHES: Final = 4096
"""Patches of an image where the config leaves its size open: 1,024 x 1,024 pixels in patches of 16. A chosen
figure; it decides the attention among the patches of an image alone."""


@dataclass(frozen=True, slots=True)
class VisionEncoder:
    """Shapes of the encoder of images.

    Attributes
    ----------
    layers, hidden_size, intermediate_size, heads : int
        Layers of the transformer over patches, whose feed-forward blocks have two matrices.
    patches_per_token : int
        Patches that become one token of the prompt.
    patches_per_image : int
        Patches among which attention runs.
    projection : tuple[tuple[int, int], ...]
        Widths (from, to) of the matrices that turn patches into tokens, each applied once a token.
    """

    layers: int
    hidden_size: int
    intermediate_size: int
    heads: int
    patches_per_token: int
    patches_per_image: int
    projection: tuple[tuple[int, int], ...]

    @property
    def weights(self) -> int:
        """Number of weights."""
        layer = 4 * self.hidden_size**2 + 2 * self.hidden_size * self.intermediate_size
        return self.layers * layer + sum(width * to for width, to in self.projection)


def vision_encoder(config: Mapping[str, object], model: str, hidden_size: int) -> VisionEncoder | None:
    """Read the encoder of a config; None without one, or if its shapes are not understood.

    Parameters
    ----------
    config : Mapping[str, object]
        The whole config; its part `vision_config` counts. Keys: transformers, configuration_qwen3_vl.py,
        configuration_siglip.py with configuration_gemma3.py.
    model : str
        For messages.
    hidden_size : int
        Width of the decoder.
    """
    part = config.get("vision_config")
    if not isinstance(part, Mapping):
        return None
    kind = str(part.get("model_type", ""))
    reader = ConfigReader(model, kind, part)
    if kind in _QWEN and reader.has("depth"):
        return _of_qwen(reader, hidden_size)
    tokens = config.get("mm_tokens_per_image")
    if kind == "siglip_vision_model" and tokens is not None and reader.has("num_hidden_layers"):
        return _of_siglip(reader, ConfigReader(model, kind, config).count("mm_tokens_per_image"), hidden_size)
    return None


def _of_qwen(reader: ConfigReader, hidden_size: int) -> VisionEncoder:
    merge = reader.count("spatial_merge_size") ** 2
    if merge > MEGAPIXEL_PATCHES:
        reader.refuse(f"'spatial_merge_size': {counted(merge, 'patch')} a token are more than an image has")
    width, heads = _width_and_heads(reader, "num_heads")
    merged = merge * width
    merger = ((merged, merged), (merged, reader.optional_count("out_hidden_size") or hidden_size))
    # Deeper layers reach the decoder through separate mergers.
    mergers = 1 + len(reader.items("deepstack_visual_indexes") or ())
    return VisionEncoder(
        layers=reader.count("depth"),
        hidden_size=width,
        intermediate_size=reader.count("intermediate_size"),
        heads=heads,
        patches_per_token=merge,
        patches_per_image=MEGAPIXEL_PATCHES,
        projection=merger * mergers,
    )


def _of_siglip(reader: ConfigReader, tokens: int, hidden_size: int) -> VisionEncoder:
    side, patch = reader.count("image_size"), reader.count("patch_size")
    if patch > side:
        reader.refuse(f"an image {side} pixels wide has no patch of {patch}")
    patches = (side // patch) ** 2
    width, heads = _width_and_heads(reader, "num_attention_heads")
    return VisionEncoder(
        layers=reader.count("num_hidden_layers"),
        hidden_size=width,
        intermediate_size=reader.count("intermediate_size"),
        heads=heads,
        patches_per_token=max(1, patches // tokens),
        patches_per_image=patches,
        projection=((width, hidden_size),),
    )


def _width_and_heads(reader: ConfigReader, heads_key: str) -> tuple[int, int]:
    width, heads = reader.count("hidden_size"), reader.count(heads_key)
    if width % heads:
        reader.refuse(f"a vision encoder {width} wide cannot have {counted(heads, 'head')}")
    return width, heads


_QWEN: Final = frozenset({"qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe"})
"""Encoders with patches merged in squares, by the `model_type` of their config."""
