"""How fast a search space is swept, and how much memory that takes.

    python benchmarks/landscape.py [--largest 10000000] [--seed 1]

A configuration is one (hardware, phase, layout, batch, request); each gets latency, memory, rate, cost and
energy, is held against the SLO, and the Pareto frontier of every request is found. The same process then lets
aiconfigurator evaluate a seeded sample of its own continuous batching configurations of the same model, where
its package is installed: latency, memory and rate of one configuration a call.
"""

from __future__ import annotations

import argparse
import logging
import resource
import sys
import time
import warnings
from pathlib import Path
from typing import Final

import numpy as np

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Precision
from fleetplan.fleet.machine import usable_cores
from fleetplan.perfmodel.evaluator import build_evaluator
from fleetplan.perfmodel.landscape import LatencyTarget, Option, RequestShape, SearchSpace, SweepSpace, sweep
from fleetplan.perfmodel.serving import default_scheduling

SIZES: Final = (10_000, 100_000, 1_000_000, 10_000_000)
MODEL: Final = "llama3-70b"
HARDWARE: Final = ("H100-SXM", "H200-SXM", "B200-SXM", "MI300X")
USD_PER_ACCELERATOR_HOUR: Final = 2.0
KW_PER_ACCELERATOR: Final = 1.3
TARGET: Final = LatencyTarget(ttft_ms=2000.0, tpot_ms=50.0)

DENSE_BATCHES: Final = tuple(range(1, 257))
PREFILL_BATCHES: Final = tuple(range(1, 9))

BAR_PER_S: Final = 1e6
BAR_GB: Final = 2.0
BAR_RATIO: Final = 100.0

PEER_MODEL: Final = "meta-llama/Meta-Llama-3.1-70B"
PEER_EVALUATIONS: Final = 300


def requests(count: int, seed: int) -> tuple[RequestShape, ...]:
    """Return lengths as chats and documents have them."""
    random = np.random.default_rng(seed)
    new = random.integers(100, 8192, count).tolist()
    cached = random.integers(0, 4096, count).tolist()
    output = random.integers(32, 1024, count).tolist()
    return tuple(
        RequestShape(tokens, generated, tokens + prefix)
        for tokens, prefix, generated in zip(new, cached, output, strict=True)
    )


def space(size: int, seed: int) -> SweepSpace:
    """Return about `size` configurations."""
    options = tuple(
        Option(
            name,
            build_evaluator(MODEL, accelerators()[name], "vllm", Precision("fp8", "bf16"), Path()),
            USD_PER_ACCELERATOR_HOUR,
            KW_PER_ACCELERATOR,
            scheduling=default_scheduling("vllm", accelerators()[name]),
        )
        for name in HARDWARE
    )
    if size < 2 * SIZES[0]:
        return SweepSpace(options, requests(1, seed), TARGET, SearchSpace())
    search = SearchSpace(prefill_batches=PREFILL_BATCHES, decode_batches=DENSE_BATCHES)
    one = sweep(SweepSpace(options, requests(1, seed), TARGET, search)).configurations
    return SweepSpace(options, requests(max(1, round(size / one)), seed), TARGET, search)


def peak_gb() -> float:
    """Return the most memory that this process ever held. [GB]."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def measured(swept: SweepSpace) -> tuple[int, float, float, int]:
    """Return configurations, wall seconds, CPU seconds and points of the frontier of a sweep."""
    start, busy = time.perf_counter(), time.process_time()
    result = sweep(swept)
    frontier = result.frontier.count
    return result.configurations, time.perf_counter() - start, time.process_time() - busy, frontier


def peer_per_s(seed: int) -> tuple[float, float] | None:
    """Return configurations a second and a CPU second of aiconfigurator; None where it is not installed."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    try:
        from aiconfigurator_core.sdk.backends.factory import get_backend  # noqa: PLC0415
        from aiconfigurator_core.sdk.config import RuntimeConfig  # noqa: PLC0415
        from aiconfigurator_core.sdk.config_builders import build_model_config  # noqa: PLC0415
        from aiconfigurator_core.sdk.models import get_model  # noqa: PLC0415
        from aiconfigurator_core.sdk.perf_database import get_database  # noqa: PLC0415
    except ImportError:
        return None
    backend, database = get_backend("vllm"), get_database("h200_sxm", "vllm", "0.24.0")
    quantised = {"gemm_quant_mode": "fp8", "kvcache_quant_mode": "bfloat16", "fmha_quant_mode": "bfloat16"}
    models = [
        get_model(PEER_MODEL, build_model_config(tp, 1, 1, 1, 1, **quantised), "vllm") for tp in (2, 4, 8)
    ]
    random = np.random.default_rng(seed)

    def evaluate(count: int) -> None:
        for batch, tokens, output in zip(
            random.integers(2, 256, count).tolist(),
            random.integers(100, 8192, count).tolist(),
            random.integers(32, 1024, count).tolist(),
            strict=True,
        ):
            asked = RuntimeConfig(batch_size=batch, isl=tokens, osl=output, ttft=2000, tpot=50)
            model = models[int(random.integers(len(models)))]
            backend.run_agg(model, database, asked, ctx_tokens=1024 * int(random.integers(1, 9)))

    evaluate(20)  # its tables are loaded by the first calls
    start, busy = time.perf_counter(), time.process_time()
    evaluate(PEER_EVALUATIONS)
    wall_s, cpu_s = time.perf_counter() - start, time.process_time() - busy
    return PEER_EVALUATIONS / wall_s, PEER_EVALUATIONS / cpu_s


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--largest", type=int, default=SIZES[-1])
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    print(f"{MODEL} on {', '.join(HARDWARE)}; {usable_cores()} cores, as many threads")
    first = time.perf_counter()
    measured(space(SIZES[0], arguments.seed))
    print(f"tables read and first sweep: {time.perf_counter() - first:.1f} s")
    fastest = fastest_of_cpu = 0.0
    for size in (size for size in SIZES if size <= arguments.largest):
        count, wall_s, cpu_s, frontier = measured(space(size, arguments.seed))
        fastest, fastest_of_cpu = max(fastest, count / wall_s), max(fastest_of_cpu, count / cpu_s)
        print(
            f"{count:>10,} configurations in {wall_s:7.2f} s: {count / wall_s:.0f} configurations/s "
            f"({count / cpu_s:.0f} a CPU second, frontier of {frontier:,} points, peak {peak_gb():.2f} GB)"
        )
    memory_gb = peak_gb()
    peer = peer_per_s(arguments.seed)
    met = [fastest >= BAR_PER_S, memory_gb < BAR_GB]
    print(f"at least {BAR_PER_S:,.0f} configurations/s: {'met' if met[0] else 'missed'} ({fastest:,.0f})")
    print(f"under {BAR_GB:g} GB: {'met' if met[1] else 'missed'} ({memory_gb:.2f})")
    if peer is None:
        print("aiconfigurator-core is not installed: no ratio")
    else:
        ratio = fastest / peer[0]
        met.append(ratio >= BAR_RATIO)
        print(
            f"aiconfigurator-core: {peer[0]:.0f} evaluations/s ({peer[1]:.0f} a CPU second); "
            f"ratio {ratio:.0f} "
            f"({fastest_of_cpu / peer[1]:.0f} by CPU seconds); at least {BAR_RATIO:g}: "
            f"{'met' if met[-1] else 'missed'}"
        )
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
