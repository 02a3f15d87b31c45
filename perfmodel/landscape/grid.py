"""One block of a search space: a cross product of layouts, batch sizes and requests, evaluated at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fleetplan.perfmodel.evaluator import Engines, Evaluator
from fleetplan.perfmodel.landscape.frameworks import LayoutSetting
from fleetplan.perfmodel.landscape.noted_steps import NotedSteps
from fleetplan.perfmodel.landscape.phases import (
    RequestShape,
)
from fleetplan.perfmodel.landscape.reasons import is_early
from fleetplan.perfmodel.operators import ByteArray, FloatArray, IntArray
from fleetplan.perfmodel.parallelism import Layouts, Parallelism
from fleetplan.perfmodel.serving import Scheduling
from fleetplan.perfmodel.steps import ConfigurationBatch


@dataclass(frozen=True, slots=True)
class Option:
    """One kind of hardware with the model at one precision.

    Attributes
    ----------
    hardware : str
        Name in reports.
    evaluator : Evaluator
        The model on it.
    usd_per_accelerator_hour : float or None
        Price; None if unknown, so that its cost is NaN. [USD/h]
    kw_per_accelerator : float or None
        Power of a card with its share of the host; None if unknown. [kW]
    framework : str
        Framework whose layout rules apply (`fleetplan.perfmodel.landscape.frameworks`); empty for none.
    scheduling : Scheduling or None
        Scheduling of the framework, for `evaluate_phase`; None for the identities of the paper.
    prompt_stages : tuple[int, ...]
        Pipeline stages that prefill replicas may have; empty if unknown.
    """

    hardware: str
    evaluator: Evaluator
    usd_per_accelerator_hour: float | None
    kw_per_accelerator: float | None
    framework: str = ""
    scheduling: Scheduling | None = None
    prompt_stages: tuple[int, ...] = ()

    @property
    def setting(self) -> LayoutSetting:
        """Further conditions on layouts."""
        return LayoutSetting(self.evaluator.accelerator.vendor, frozenset(self.prompt_stages))


Axes = tuple[Sequence[Parallelism], Sequence[int], Sequence[RequestShape]]
"""Layouts, batch sizes and requests of a block."""


@dataclass(frozen=True, slots=True)
class GridPlace:
    """Position of a block in its search space.

    Attributes
    ----------
    option : int
        Position in the options.
    phase : str
        prefill, decode or aggregated.
    first_row : int
        Number of its first configuration; the others follow in the order of the axes, the last one fastest.
    first_request : int
        Position of its first request in the requests of the space.
    """

    option: int
    phase: str
    first_row: int
    first_request: int


@dataclass(frozen=True, slots=True)
class GridBlock:
    """One part of the space with its numbers, each array of shape (n_layouts, n_batches, n_requests).

    Attributes
    ----------
    place : GridPlace
        Its position.
    layouts : tuple[Parallelism, ...]
        First axis.
    batches : IntArray
        Second axis.
    excluded : ByteArray
        Position in `REASONS`. Rows that the layout, memory or a data type excludes have meaningless numbers,
        which `points_of` omits.
    latency_ms : FloatArray
        Latency of the step. [ms]
    ttft_ms, tpot_ms : FloatArray or None
        None if the phase has none. With the KV transfer in prefill. [ms]
    kv_transfer_ms : FloatArray
        Time that the KV transfer adds to prefill; 0 in other phases. [ms]
    requests_per_s_per_accelerator : FloatArray
        Rate of a replica over its accelerators. [1/s]
    memory_gib : FloatArray
        Memory of the fullest accelerator. [GiB]
    usd_per_million_tokens, kwh_per_million_tokens : FloatArray
        Per million input and output tokens, at full load; NaN without a price or power.
    whole : bool
        Whether rows that cannot run have numbers too.
    engines : Engines or None
        Load of the engines of aggregated rows.
    steps : NotedSteps or None
        Detail of the steps of the other phases, if requested.
    """

    place: GridPlace
    layouts: tuple[Parallelism, ...]
    batches: IntArray
    excluded: ByteArray
    latency_ms: FloatArray
    ttft_ms: FloatArray | None
    tpot_ms: FloatArray | None
    kv_transfer_ms: FloatArray
    requests_per_s_per_accelerator: FloatArray
    memory_gib: FloatArray
    usd_per_million_tokens: FloatArray
    kwh_per_million_tokens: FloatArray
    whole: bool = False
    engines: Engines | None = None
    steps: NotedSteps | None = None

    def known(self, values: FloatArray) -> FloatArray:
        """Return the numbers, flattened, with NaN in rows excluded before evaluation."""
        if self.whole:
            return values.ravel()
        return np.where(is_early(self.excluded), np.nan, values).ravel()


def full_grid(
    layouts: Sequence[Parallelism], batches: Sequence[int], requests: Sequence[RequestShape]
) -> ConfigurationBatch:
    """Return every layout with every batch size and every request, as broadcasting arrays.

    Layouts vary along the first of three axes, batch sizes along the second, requests along the third.
    """

    def of_requests(values: list[int]) -> IntArray:
        return np.array(values, dtype=np.int64).reshape(1, 1, -1)

    return ConfigurationBatch(
        Layouts.of(list(layouts)).reshaped((-1, 1, 1)),
        np.array(batches, dtype=np.int64).reshape(1, -1, 1),
        of_requests([request.input_tokens for request in requests]),
        of_requests([request.prefix_tokens for request in requests]),
        of_requests([request.decode_context_tokens for request in requests]),
        of_requests([request.output_tokens for request in requests]),
    )
