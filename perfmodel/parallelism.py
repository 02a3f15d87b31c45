"""Parallelism and configuration of a replica, with their notation.

A layout is written `PP2-DP2TP4-TP8` or `TP8DP2-TP8EP2`, a configuration `quantised/TP4 b8@20ms`: a variant, a
layout, a batch, and how far away it serves. What is left out has no part in the configuration.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from fleetplan.perfmodel.operators import IntArray

_PART: Final = re.compile(r"(PP|TP|DP|CP|EP)([1-9][0-9]*)")
_CONFIGURATION: Final = re.compile(r"(?P<layout>[^ @]+)(?: b(?P<batch>[0-9]+))?(?:@(?P<reach>[-+.e0-9]+)ms)?")
_ATTENTION_PARTS: Final = frozenset({"TP", "DP", "CP"})
_FFN_PARTS: Final = frozenset({"TP", "EP"})


@dataclass(frozen=True, slots=True, order=True)
class Parallelism:
    """Parallelism of a replica: pipeline stages, then attention and FFN within a stage.

    Attributes
    ----------
    pp : int
        Pipeline stages.
    tp : int
        Accelerators that share the heads of attention.
    dp : int
        Attention data parallelism: ranks with separate sequences.
    ffn_tp : int
        Accelerators that share a feed-forward block or an expert.
    ep : int
        Groups that share the experts out among themselves.
    cp : int
        Accelerators that share the tokens of a sequence: of its prompt, and of its cache.

    Raises
    ------
    ValueError
        A degree below 1, or tp * dp * cp and ffn_tp * ep differ: both are the accelerators of a stage.
    """

    pp: int = 1
    tp: int = 1
    dp: int = 1
    ffn_tp: int = 1
    ep: int = 1
    cp: int = 1

    def __post_init__(self) -> None:
        if min(self.pp, self.tp, self.dp, self.ffn_tp, self.ep, self.cp) < 1:
            raise ValueError(f"every degree of parallelism is at least 1: {self}")
        if self.tp * self.dp * self.cp != self.ffn_tp * self.ep:
            raise ValueError(
                f"attention takes {self.tp * self.dp * self.cp} accelerators a stage (TP*DP*CP) "
                f"but the feed-forward part {self.ffn_tp * self.ep} (TP*EP): they must be the same"
            )

    @property
    def accelerators_per_stage(self) -> int:
        """Accelerators of one pipeline stage."""
        return self.tp * self.dp * self.cp

    @property
    def accelerators(self) -> int:
        """Accelerators of the whole replica."""
        return self.pp * self.accelerators_per_stage

    @property
    def label(self) -> str:
        """Canonical notation; omits degrees of 1, and the FFN if it follows from TP."""
        return _label(self.pp, self.tp, self.dp, self.ffn_tp, self.ep, self.cp)


# Landscapes name the same layouts again for every batch size, request and phase.
@lru_cache(maxsize=65_536)
def _label(pp: int, tp: int, dp: int, ffn_tp: int, ep: int, cp: int) -> str:
    groups = [f"PP{pp}"] if pp > 1 else []
    attention = _degrees(TP=tp, DP=dp, CP=cp)
    ffn = _degrees(TP=ffn_tp, EP=ep)
    follows = dp == cp == ep == 1
    if not follows:
        groups += [attention or "TP1", ffn]
    elif attention or not groups:
        groups.append(attention or "TP1")
    return "-".join(groups)


@lru_cache(maxsize=65_536)
def parse_parallelism(label: str) -> Parallelism:
    """Read the notation of the paper: stages, then attention, then feed-forward.

    Parameters
    ----------
    label : str
        Such as `TP8`, `PP4-TP2`, `PP2-DP2TP4-TP8` or `TP8DP2-TP8EP2`; the parts of a group may be in any
        order. Without a feed-forward group, that part is split over all accelerators of a stage.

    Raises
    ------
    ValueError
        The label is not of this form, or its two groups take different numbers of accelerators.
    """
    groups = [_parse_group(group, label) for group in label.strip().upper().split("-")]
    pp = 1
    if set(groups[0]) == {"PP"}:
        pp = groups.pop(0)["PP"]
    attention = groups.pop(0) if groups else {"TP": 1}
    ffn = groups.pop(0) if groups else None
    _refuse_other_parts(attention, _ATTENTION_PARTS, "attention", label)
    tp, dp, cp = attention.get("TP", 1), attention.get("DP", 1), attention.get("CP", 1)
    if ffn is None:
        ffn = {"TP": tp * dp * cp}
    _refuse_other_parts(ffn, _FFN_PARTS, "feed-forward", label)
    if groups:
        raise ValueError(f"{label!r} has more groups than stages, attention and feed-forward")
    return Parallelism(pp=pp, tp=tp, dp=dp, cp=cp, ffn_tp=ffn.get("TP", 1), ep=ffn.get("EP", 1))


def _degrees(**degrees: int) -> str:
    return "".join(f"{name}{degree}" for name, degree in degrees.items() if degree > 1)


def _parse_group(group: str, label: str) -> dict[str, int]:
    parts = _PART.findall(group)
    if not parts or "".join(name + degree for name, degree in parts) != group:
        raise ValueError(f"{label!r} is not a parallelism such as TP8, PP4-TP2 or TP8DP2-TP8EP2: {group!r}")
    degrees = {name: int(degree) for name, degree in parts}
    if len(degrees) < len(parts):
        raise ValueError(f"{label!r} names a part twice: {group!r}")
    return degrees


def _refuse_other_parts(group: dict[str, int], allowed: frozenset[str], what: str, label: str) -> None:
    others = sorted(set(group) - allowed)
    if others:
        raise ValueError(
            f"{label!r}: {', '.join(others)} has no place in the {what} group, which takes "
            f"{', '.join(sorted(allowed))}"
        )


def batched_label(layout: str, batch: int) -> str:
    """Return the notation of a layout, whose own is given, with a batch."""
    return f"{layout} b{batch}"


@dataclass(frozen=True, slots=True)
class Configuration:
    """Configuration of one replica.

    Attributes
    ----------
    layout : Parallelism
        Parallelism.
    batch : int or None
        Sequences of one attention-DP rank and pipeline micro-batch; None if each class has its own.
    variant : str
        Variant of the service; empty if it has only one.
    reach_ms : float or None
        Round trip to another region that its figures include; None without one. [ms]
    """

    layout: Parallelism
    batch: int | None = None
    variant: str = ""
    reach_ms: float | None = None

    @property
    def label(self) -> str:
        """The notation, which `parse` reads back."""
        variant = f"{self.variant}/" if self.variant else ""
        layout = self.layout.label
        batched = layout if self.batch is None else batched_label(layout, self.batch)
        reach = "" if self.reach_ms is None else f"@{self.reach_ms:g}ms"
        return f"{variant}{batched}{reach}"

    @classmethod
    def parse(cls, label: str) -> Configuration:
        """Read the notation of a configuration.

        Raises
        ------
        ValueError
            The label is not of this form, as the names of engine tables need not be.
        """
        variant, _, rest = label.rpartition("/")
        found = _CONFIGURATION.fullmatch(rest)
        if found is None:
            raise ValueError(f"{label!r} is not a configuration such as TP8 b64 or small/TP4 b8@20ms")
        batch, reach = found["batch"], found["reach"]
        return cls(
            parse_parallelism(found["layout"]),
            None if batch is None else int(batch),
            variant,
            None if reach is None else float(reach),
        )


@dataclass(frozen=True, slots=True)
class Layouts:
    """`Parallelism` for an array of configurations, each field of shape (n_configs,)."""

    pp: IntArray
    tp: IntArray
    dp: IntArray
    ffn_tp: IntArray
    ep: IntArray
    cp: IntArray

    @classmethod
    def of(cls, parallelisms: list[Parallelism]) -> Layouts:
        """Build the arrays from parallelisms, in the same order."""
        # Points of a landscape share few layouts: each is read once.
        known: dict[int, int] = {}
        codes = [known.setdefault(id(each), len(known)) for each in parallelisms]
        distinct = {id(each): each for each in parallelisms}.values()
        columns = [[getattr(each, name) for each in distinct] for name in _FIELDS]
        layouts = cls(*(np.array(column, dtype=np.int64) for column in columns))
        return layouts if len(known) == len(codes) else layouts.take(np.array(codes, dtype=np.int64))

    @classmethod
    def concatenated(cls, parts: Sequence[Layouts]) -> Layouts:
        """Return the layouts of all `parts`, one after the other."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in _FIELDS))

    @property
    def token_ranks(self) -> IntArray:
        """Groups of a stage with separate tokens between the blocks, shape (n_configs,)."""
        return self.dp * self.cp

    @property
    def accelerators_per_stage(self) -> IntArray:
        """Accelerators of one pipeline stage, shape (n_configs,)."""
        return self.tp * self.dp * self.cp

    @property
    def accelerators(self) -> IntArray:
        """Accelerators of a replica, shape (n_configs,)."""
        return self.pp * self.accelerators_per_stage

    def distinct(self) -> tuple[list[Parallelism], IntArray]:
        """Return the layouts that there are, each once, and which of them each one is, shape (n_configs,)."""
        degrees = [getattr(self, name) for name in _FIELDS]
        key = np.zeros(self.pp.shape, dtype=np.int64)
        for degree in degrees:
            key = key * (int(degree.max(initial=0)) + 1) + degree
        _, first, codes = np.unique(key, return_index=True, return_inverse=True)
        columns = np.stack([degree[first] for degree in degrees], axis=1)
        return [Parallelism(*row) for row in columns.tolist()], codes.reshape(-1)

    def reshaped(self, shape: tuple[int, ...]) -> Layouts:
        """Return the same layouts along the axes of `shape`."""
        return self._mapped(lambda values: values.reshape(shape))

    def flattened(self, shape: tuple[int, ...]) -> Layouts:
        """Return one layout for each element of `shape`, to which these broadcast, the last axis fastest."""
        return self._mapped(lambda values: np.broadcast_to(values, shape).ravel())

    def take(self, rows: IntArray) -> Layouts:
        """Return the layouts at `rows`, in that order."""
        return self._mapped(lambda values: values[rows])

    def _mapped(self, change: Callable[[IntArray], IntArray]) -> Layouts:
        return Layouts(*(change(getattr(self, name)) for name in _FIELDS))


_FIELDS: Final = ("pp", "tp", "dp", "ffn_tp", "ep", "cp")
"""The degrees, in the order of the fields of `Layouts`."""
