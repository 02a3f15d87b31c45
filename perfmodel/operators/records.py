"""Properties of operator kinds: dimensions, limiting resource, and work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from fleetplan.perfmodel.operators.work_done import Floats, Ints, Work


class Limit(Enum):
    """Resource that limits an operator; `optables/formulas/roofline.py` has a formula for each."""

    WEIGHTS = auto()
    """Products with weights: the matrix peak of their data type, and the bytes of weights and activations."""
    PREFILL_ATTENTION = auto()
    """Attention over prompts: its matrix rate, and the bytes of the KV cache."""
    DECODE_ATTENTION = auto()
    """Attention of single tokens: the larger of both."""
    SPARSE_ATTENTION = auto()
    """Attention to chosen tokens, gathered one by one."""
    COMPRESSED_ATTENTION = auto()
    """A block of attention to a window and to compressed entries, with its projections."""
    TOKEN_SELECTION = auto()
    """Scores of an index and the choice of the best."""
    BLOCK_SPARSE_ATTENTION = auto()
    """Scores of an index of blocks, their choice, and attention to the chosen blocks."""
    PREFILL_STATE = auto()
    """Recurrences over prompts: small products."""
    DECODE_STATE = auto()
    """Recurrences of single tokens: the bytes of the state."""
    MEMORY = auto()
    """The bytes of activations alone."""
    COLLECTIVE = auto()
    """Links and network of a group of accelerators."""
    SEND = auto()
    """The link between two accelerators."""
    ROUTED_TOKENS = auto()
    """Links and network between the accelerators of experts."""


@dataclass(frozen=True, slots=True)
class KindRecord:
    """Facts of one operator kind.

    Attributes
    ----------
    dims : tuple[str, ...]
        Names of the dimensions.
    limit : Limit
        Formula of its time without measurements.
    work : Callable
        Its operations and bytes; see `fleetplan.perfmodel.operators.work_done`.
    axes : tuple[str, ...]
        Dimensions along which a site was swept; empty if no table may hold the kind.
    curve : str
        Single dimension that determines the time; only tables of users contain such kinds.
    kernels : int
        Large kernels of one operator, each of which a layer waits for; 0 for small kernels and communication.
    """

    dims: tuple[str, ...]
    limit: Limit
    work: Callable[[float, Ints, Floats], Work]
    axes: tuple[str, ...] = ()
    curve: str = ""
    kernels: int = 0
