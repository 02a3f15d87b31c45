"""Operands of kernels: weights and caches that are cold when they are read, as in a step, and activations.

Between two uses of a weight, a step reads all others. A kernel that is timed repeatedly on one weight would
find it in the last-level cache. So the data that a step keeps in memory are cut from an arena, place after
place, until all of it was used; activations, which the previous operator has just written, stay in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from typing import Final, TypeVar

import torch

Run = Callable[[], object]
"""A kernel with its operands."""

MOST_SETS: Final = 1024
"""Number of operands that a kernel uses in turn: more than its executions in one time."""

_TILE_ELEMENTS: Final = 2**20
_ALIGNMENT: Final = 128
"""Start of an operand: that of a line of a GPU's cache. [elements]"""

_LARGE_RATIO: Final = 0.25
"""Operands above this share of the arena get separate memory, so that few of them do not overlap."""

_Kept = TypeVar("_Kept")


class Kernel:
    """A kernel with one or more sets of operands, used in turn.

    Attributes
    ----------
    sets : tuple[tuple[Run, ...], ...]
        For each set the parts of one execution, between which a step runs other operators.
    operators : int
        Operators of a table per execution.
    """

    def __init__(self, sets: Sequence[Sequence[Run]], operators: int = 1) -> None:
        self.sets = tuple(tuple(parts) for parts in sets)
        self.operators = operators
        self._turns: Iterator[tuple[Run, ...]] = cycle(self.sets)

    @classmethod
    def of(cls, run: Run) -> Kernel:
        """Return a kernel of one part with one set."""
        return cls([[run]])

    def next_parts(self) -> tuple[Run, ...]:
        """Return the parts of an execution with the set whose turn it is."""
        return next(self._turns)


class Arena:
    """Memory at random values, as large as what a step reads between two uses of a weight.

    Attributes
    ----------
    where : torch.device
        Device of the memory.
    size_bytes : int
        Size. [bytes]
    """

    def __init__(self, where: torch.device, size_bytes: int) -> None:
        self.where = where
        self.size_bytes = max(2 * _ALIGNMENT, size_bytes)
        self._tile = torch.randn(_TILE_ELEMENTS, dtype=torch.float32).to(torch.bfloat16).to(where)
        self._stores: dict[torch.dtype, torch.Tensor] = {}
        self._next = 0

    def take(self, dtype: torch.dtype, *shape: int) -> torch.Tensor:
        """Cut the next operand from it; a large one gets separate memory."""
        count = torch.Size(shape).numel()
        if count * dtype.itemsize > _LARGE_RATIO * self.size_bytes:
            return self._values(dtype, count).view(shape)
        if dtype not in self._stores:
            self._stores[dtype] = self._values(dtype, self.size_bytes // dtype.itemsize)
        store = self._stores[dtype]
        first = self._next if self._next + count <= store.numel() else 0
        self._next = first + -(-count // _ALIGNMENT) * _ALIGNMENT
        return store[first : first + count].view(shape)

    def _values(self, dtype: torch.dtype, count: int) -> torch.Tensor:
        times = -(-count // _TILE_ELEMENTS)
        return self._tile.to(dtype).repeat(times)[:count].contiguous()


class Operands:
    """The operands of one kernel, set by set.

    Attributes
    ----------
    where : torch.device
        Data type of all of them.
    """

    def __init__(self, arena: Arena) -> None:
        self.where = arena.where
        self._arena = arena
        self._cold_bytes = 0
        self._kept: list[object] = []
        self._position = 0

    def cold(self, *shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
        """Return a weight or a part of a cache: another one in every set."""
        taken = self._arena.take(dtype, *shape)
        self._cold_bytes += taken.numel() * dtype.itemsize
        return taken

    def warm(self, *shape: int) -> torch.Tensor:
        """Return an activation in BF16: the same one in every set."""
        return self.once(
            lambda: torch.randn(*shape, dtype=torch.float32, device=self.where).to(torch.bfloat16)
        )

    def once(self, make: Callable[[], _Kept]) -> _Kept:
        """Return what all sets share, made for the first one; sets have to ask in the same order."""
        if self._position == len(self._kept):
            self._kept.append(make())
        kept: _Kept = self._kept[self._position]  # type: ignore[assignment]
        self._position += 1
        return kept

    def sets(self, make: Callable[[Operands], _Kept]) -> list[_Kept]:
        """Make as many sets as fill the arena; a single one if none of it is cold."""
        made = [make(self)]
        if self._cold_bytes:
            wanted = min(MOST_SETS, -(-self._arena.size_bytes // self._cold_bytes))
            for _ in range(wanted - 1):
                self._position = 0
                made.append(make(self))
        return made
