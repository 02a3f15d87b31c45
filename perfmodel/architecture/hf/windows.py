"""Which attention layers of a decoder slide over a window."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from fleetplan.fleet.figures import counted
from fleetplan.perfmodel.architecture.hf.reader import ConfigReader
from fleetplan.perfmodel.architecture.layers import WHOLE_CONTEXT

GEMMA3_WINDOW_PATTERN: Final = 6
"""One layer in so many sees the whole context where the config does not say. [layers]

Source: transformers 4.57, Gemma3TextConfig, default of `sliding_window_pattern`."""

FOURTHS_WINDOW_PATTERN: Final = 4
"""The same of Command A and OLMo 3. [layers]

Source: transformers 4.57, Cohere2Config and Olmo3Config, what `layer_types` is where it is left out."""

WindowRule = Callable[[ConfigReader, int], bool]
"""Whether a layer slides, in a config that has a window and no `layer_types`."""


def _every_layer(reader: ConfigReader, layer: int) -> bool:
    return True


def _every_other(reader: ConfigReader, layer: int) -> bool:
    return layer % 2 == 0


def _after_whole_layers(reader: ConfigReader, layer: int) -> bool:
    return layer >= reader.count("max_window_layers")


def _all_but_one_in(pattern: int) -> WindowRule:
    """Return a rule by which one layer in `pattern` does not slide, unless the config states a number."""

    def rule(reader: ConfigReader, layer: int) -> bool:
        return (layer + 1) % (reader.optional_count("sliding_window_pattern") or pattern) != 0

    return rule


WINDOW_RULES: Final[dict[str, WindowRule]] = {
    # Source of each: transformers 4.57, the config class of the family.
    "mistral": _every_layer,
    "mixtral": _every_layer,
    "phi3": _every_layer,
    "phimoe": _every_layer,
    "qwen3_moe": _every_layer,
    "starcoder2": _every_layer,
    "mimo": _after_whole_layers,
    "qwen2": _after_whole_layers,
    "qwen2_5_vl": _after_whole_layers,
    "qwen2_5_vl_text": _after_whole_layers,
    "qwen2_moe": _after_whole_layers,
    "qwen3": _after_whole_layers,
    "gemma2": _every_other,
    "gpt_oss": _every_other,
    "gemma3_text": _all_but_one_in(GEMMA3_WINDOW_PATTERN),
    "cohere2": _all_but_one_in(FOURTHS_WINDOW_PATTERN),
    "olmo3": _all_but_one_in(FOURTHS_WINDOW_PATTERN),
}

SWITCHED_WINDOWS: Final = frozenset(
    {"mimo", "qwen2", "qwen2_5_vl", "qwen2_5_vl_text", "qwen2_moe", "qwen3", "qwen3_moe", "smollm3"}
)
"""Families that use their window only where `use_sliding_window` is true."""


def layer_windows(reader: ConfigReader, layers: int) -> list[int]:
    """Return the window of every layer by config or family; `WHOLE_CONTEXT` without one. [tokens]."""
    types = reader.per_layer("layer_types", layers)
    if types is not None:
        sizes = {"full_attention": WHOLE_CONTEXT}
        if "sliding_attention" in types:
            sizes["sliding_attention"] = reader.count("sliding_window")
        return [sizes[known_kind(reader, kind, sizes)] for kind in types]
    window = reader.switched_count("sliding_window")
    switched = reader.model_type in SWITCHED_WINDOWS
    if window is None or (switched and not reader.flag("use_sliding_window", absent=False)):
        return [WHOLE_CONTEXT] * layers
    rule = WINDOW_RULES.get(reader.model_type)
    if rule is None:
        reader.refuse(
            f"it has a window of {counted(window, 'token')} but no 'layer_types' that say which layers slide"
        )
    return [window if rule(reader, layer) else WHOLE_CONTEXT for layer in range(layers)]


def known_kind(
    reader: ConfigReader, kind: object, known: Mapping[str, object], what: str = "attention layers"
) -> str:
    """Return a kind of layer that is known; any other is refused."""
    if not isinstance(kind, str) or kind not in known:
        reader.refuse(f"{what} of type {kind!r} are not understood (known: {', '.join(known)})")
    return kind
