"""Typed reading of a Hugging Face model config: what is missing or of the wrong kind is refused by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from reprlib import repr as shown
from typing import Final, NoReturn

from fleetplan.fleet.errors import brief
from fleetplan.fleet.figures import counted

LARGEST_COUNT: Final = 2**24
"""Largest size or number in a config: some sixteen times the largest vocabulary, above all context limits."""

MOST_LAYERS: Final = 10_000
"""Most layers of a decoder; published ones have some hundred."""


class UnsupportedArchitecture(ValueError):  # noqa: N818 - it names what the model is, not what went wrong
    """A decoder that the performance model does not understand; it is refused, never guessed.

    Attributes
    ----------
    model : str
        HF id, or what the user calls the model.
    model_type : str
        `model_type` of its config.
    reason : str
        What is not understood.
    """

    def __init__(self, model: str, model_type: str, reason: str) -> None:
        self.model = model
        self.model_type = model_type
        self.reason = reason
        super().__init__(brief(f"{model}: architecture {model_type!r} is not supported: {reason}"))


@dataclass(frozen=True, slots=True)
class ConfigReader:
    """The config of one decoder, read key by key.

    Attributes
    ----------
    model : str
        HF id, or what the user calls the model; for messages.
    model_type : str
        `model_type` of the decoder's part of the config.
    values : Mapping[str, object]
        The decoder's part of the config (`text_config` of a model that also sees).
    """

    model: str
    model_type: str
    values: Mapping[str, object]

    def refuse(self, reason: str) -> NoReturn:
        """Raise `UnsupportedArchitecture` with `reason`."""
        raise UnsupportedArchitecture(self.model, self.model_type, reason)

    def has(self, key: str) -> bool:
        """Whether the key says anything: null, false, 0 and empty lists say that a feature is absent."""
        return bool(self.values.get(key))

    def count(self, key: str) -> int:
        """Return the positive whole number under `key`."""
        value = self.optional_count(key)
        if value is None:
            self.refuse(f"its config lacks {key!r}")
        return value

    def optional_count(self, key: str) -> int | None:
        """Return the positive whole number under `key`, or None if the config has none or null."""
        value = self.values.get(key)
        if value is None:
            return None
        most = MOST_LAYERS if key == "num_hidden_layers" else LARGEST_COUNT
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            self.refuse(f"{key!r} must be a whole number from 1 to {most:,}, but is {shown(value)}")
        return value

    def switched_count(self, key: str) -> int | None:
        """Return the positive whole number under `key`, or None if null or 0 switches its feature off."""
        value = self.values.get(key)
        return None if value == 0 and not isinstance(value, bool) else self.optional_count(key)

    def flag(self, key: str, *, absent: bool) -> bool:
        """Return true or false under `key`, or `absent` (the documented default of the family)."""
        value = self.values.get(key)
        if value is None:
            return absent
        if not isinstance(value, bool):
            self.refuse(f"{key!r} must be true or false, but is {shown(value)}")
        return value

    def text(self, key: str) -> str | None:
        """Return the string under `key`, or None."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, str):
            self.refuse(f"{key!r} must be a string, but is {shown(value)}")
        return value

    def items(self, key: str) -> Sequence[object] | None:
        """Return the list of names, numbers or flags under `key`, or None."""
        value = self.blocks(key)
        for item in value or ():
            if not isinstance(item, str | int | float | None):
                self.refuse(f"{key!r} must hold names or numbers, but holds {shown(item)}")
        return value

    def blocks(self, key: str) -> Sequence[object] | None:
        """Return the list of anything under `key`, or None."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, str) or not isinstance(value, Sequence):
            self.refuse(f"{key!r} must be a list, but is {shown(value)}")
        return value

    def per_layer(self, key: str, layers: int) -> Sequence[object] | None:
        """Return the names or numbers under `key` with one item for each of `layers` layers, or None."""
        return self._of_layers(key, self.items(key), layers)

    def blocks_per_layer(self, key: str, layers: int) -> Sequence[object] | None:
        """Return the list of anything under `key` with one item for each of `layers` layers, or None."""
        return self._of_layers(key, self.blocks(key), layers)

    def _of_layers(self, key: str, items: Sequence[object] | None, layers: int) -> Sequence[object] | None:
        if items is not None and len(items) != layers:
            self.refuse(f"{key!r} describes {counted(len(items), 'layer')}, but the model has {layers}")
        return items
