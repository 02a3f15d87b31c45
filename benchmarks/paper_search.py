"""Search the paper's space of setups, and compare what it finds with the setups of Tables 6 and 7."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from benchmarks.paper_bars import Check
from benchmarks.paper_cases import ONLINE, Catalogue, architecture, configurations, evaluator, on_cluster
from numpy.typing import NDArray
from tests.perfmodel.paper_tables import ACCELERATORS, DISAGGREGATED, OUTPUT_TOKENS, Disaggregated

from fleetplan.perfmodel.evaluator import Evaluator, PhaseResult
from fleetplan.perfmodel.landscape import SearchSpace, search_layouts
from fleetplan.perfmodel.landscape.search_space import decode_batch_grid
from fleetplan.perfmodel.operators import FloatArray
from fleetplan.perfmodel.parallelism import Parallelism, parse_parallelism

SPACE: Final = SearchSpace(max_accelerators=ACCELERATORS, pipeline_stages=(1, 2, 4, 8, 16, 32, 64, 128))

TTFT_LIMIT_MS: Final = {"llama3-70b": 290.0, "llama3-405b": 465.0}
"""The paper does not print its limits. Its setups allow [233, 350) ms for 70B and [380, 555) ms for 405B:
the slowest prefill it took, and the next one that would have had a higher rate. The middle of each."""

TPOT_LIMIT_MS: Final = {"llama3-70b": 30.0, "llama3-405b": 45.0}
"""The largest TPOT of Table 6 is 30 ms for 70B and 44 ms for 405B."""

SETUP_SHARE: Final = 0.85
"""The paper's setup reaches at least this share of the best rate that is found."""


@dataclass(frozen=True, slots=True)
class BestLayout:
    """What a search finds for one phase of a row.

    Attributes
    ----------
    layout : Parallelism
        The layout with the highest rate within the limits.
    batch : int
        Its batch.
    requests_per_s : float
        Its rate. [1/s]
    setup_requests_per_s : float
        The highest rate of the paper's layout within the same limits; 0 where none is within. [1/s]
    """

    layout: Parallelism
    batch: int
    requests_per_s: float
    setup_requests_per_s: float


def best_prefill(row: Disaggregated, model: Evaluator) -> BestLayout:
    """Find the layout with the highest prefill rate within the TTFT limit, one prompt at a time."""
    limit_ms = TTFT_LIMIT_MS[row.model] if row.table == ONLINE else np.inf
    return _best(row, model, "prefill", limit_ms)


def best_decode(row: Disaggregated, model: Evaluator) -> BestLayout:
    """Find the layout and batch with the highest decode rate within the TPOT limit."""
    limit_ms = TPOT_LIMIT_MS[row.model] if row.table == ONLINE else np.inf
    return _best(row, model, "decode", limit_ms)


def _best(row: Disaggregated, model: Evaluator, phase: str, limit_ms: float) -> BestLayout:
    setup = parse_parallelism(row.prefill if phase == "prefill" else row.decode)
    layouts = search_layouts(model.architecture, model.accelerator, SPACE)
    if setup not in layouts:
        # Table 7 has PP128 for the 126 layers of 405B, which no pipeline of whole layers can have.
        layouts = (*layouts, setup)
    batches = np.array((1,) if phase == "prefill" else decode_batch_grid(), dtype=np.int64)
    positions = np.repeat(np.arange(len(layouts), dtype=np.int64), batches.size)
    batch = np.tile(batches, len(layouts))
    asked = configurations(
        [layouts[position] for position in positions],
        batch.tolist(),
        [OUTPUT_TOKENS[row.table]] * batch.size,
    )
    result = model.prefill(asked) if phase == "prefill" else model.decode(asked)
    allowed = _within(result, limit_ms)
    rates: FloatArray = np.where(allowed, on_cluster(result.requests_per_s, asked), 0.0)
    is_setup = positions == layouts.index(setup)
    chosen = int(np.argmax(rates))
    return BestLayout(
        layouts[positions[chosen]],
        int(batch[chosen]),
        float(rates[chosen]),
        float(np.where(is_setup, rates, 0.0).max()),
    )


def _within(result: PhaseResult, limit_ms: float) -> NDArray[np.bool_]:
    return result.memory.fits & (result.latency_ms <= limit_ms)


def search_checks(parts: Catalogue) -> Iterator[Check]:
    """Whether the search chooses as the paper does, or the paper's choice is as good."""
    setups = []
    for row in DISAGGREGATED:
        model = evaluator(architecture(row.model), parts[row.hardware])
        name = f"{row.table} {row.model} {row.hardware}"
        prefill, decode = best_prefill(row, model), best_decode(row, model)
        yield _same_degree(f"{name} prefill", prefill, row.prefill)
        if (row.table, row.model) == (ONLINE, "llama3-405b"):
            yield _same_degree(f"{name} decode", decode, row.decode)
        else:
            reached = decode.setup_requests_per_s / decode.requests_per_s
            name = f"{name} {row.decode}; ours {decode.layout.label} b{decode.batch}"
            section = "Search, rate of the paper's decode layout over our best"
            setups.append(Check(section, name, reached, SETUP_SHARE, np.inf))
    yield from setups


def _same_degree(name: str, found: BestLayout, setup: str) -> Check:
    paper = parse_parallelism(setup).tp
    return Check("Search, tensor parallelism", name, found.layout.tp, paper, paper, paper)
