"""Measured operators of this machine predict a small decoder that runs on it.

    python benchmarks/microbench.py [--device cpu|cuda] [--minutes 3] [--folder FOLDER]

Operators of a small decoder are measured as `plan optables measure` does it, on one thread; then its prefill
and decode steps are predicted from that table alone and run in torch. Both take the fastest of their
executions in processor time, so that other processes of the machine disturb them least. Exits with 1 where a
step is off by more than the bar: 20 % on a CPU, 10 % on a GPU. Needs the extra `microbench`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np
import torch

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.hardware import Accelerator
from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.architecture import (
    DenseFfn,
    GroupedQueryAttention,
    LayerGroup,
    ModelArchitecture,
)
from fleetplan.perfmodel.microbench.device import Device, open_device
from fleetplan.perfmodel.microbench.figures import measured_figures
from fleetplan.perfmodel.microbench.journal import Journal, Origin
from fleetplan.perfmodel.microbench.reference import ReferenceDecoder
from fleetplan.perfmodel.microbench.session import Goal, run_session
from fleetplan.perfmodel.microbench.single import measure_alone
from fleetplan.perfmodel.microbench.sites import Extent, model_sites
from fleetplan.perfmodel.microbench.table_files import write_table
from fleetplan.perfmodel.microbench.timing import Effort, stable_timing
from fleetplan.perfmodel.optables.source import operator_source
from fleetplan.perfmodel.parallelism import Layouts, Parallelism
from fleetplan.perfmodel.phases import Evaluator
from fleetplan.perfmodel.shapes import ConfigurationBatch, StepShape, decode_shape, prefill_shape

BARS: Final = {"cpu": 0.20, "cuda": 0.10}
"""Largest error of a step."""

BF16: Final = Precision("bf16", "bf16")
DECODER: Final = ModelArchitecture(
    name="small",
    model_type="llama",
    hidden_size=1024,
    vocab_size=8192,
    tied_embeddings=False,
    groups=(LayerGroup(8, GroupedQueryAttention(16, 4, 64, 64), DenseFfn(2816)),),
)
PREFILLS: Final = ((1, 128), (1, 512), (4, 256), (1, 2048))
DECODES: Final = ((1, 256), (8, 512), (32, 256), (16, 1024))
"""Batch and tokens of the steps that are compared."""

FASTEST: Final = Effort(quantile=0.0, most_repeats=70, most_s=1.0)


def measured_part(device: Device, folder: Path, minutes: float) -> Accelerator:
    """Measure the decoder's operators; the part that plans with them and nothing else."""
    figures = measured_figures(device, FASTEST)
    part = replace(
        accelerators()["H200-SXM"],
        name="this machine",
        measured_system=None,
        bf16_tflops=figures.bf16_tflops,
        hbm_gb_per_s=figures.memory_gb_per_s,
        hbm_gib=figures.memory_gib,
    )
    origin = Origin(part.name, device.name, f"torch {torch.__version__}", FASTEST.quantile)
    journal = Journal(folder, origin)
    outcome = run_session(
        model_sites([(DECODER, BF16)], (1,)),
        lambda each: measure_alone(each, device, FASTEST),
        journal,
        part,
        Goal(target_ratio=0.10, budget_s=minutes * 60, extent=Extent(2048)),
    )
    table = write_table(journal, origin, datetime.now(UTC).date().isoformat(), folder)
    median = np.median([each.ratio for each in outcome.errors])
    print(f"{device.name}, torch {torch.__version__}, {datetime.now(UTC).date()}")
    print(f"{figures.bf16_tflops:.2f} TFLOPS BF16, copies at {figures.memory_gb_per_s:.1f} GB/s")
    early = ", time was up" if outcome.over_budget else ""
    print(f"{len(journal.measured)} points, median error of one that is left out {median:.1%}{early}")
    return replace(part, operator_tables=(str(table),))


def predicted_ms(part: Accelerator, shape: StepShape) -> tuple[float, float]:
    """Time of a step by the table, and the share of it that the roofline gave. [ms]."""
    source = operator_source.__wrapped__(part, "vllm")
    times = Evaluator(DECODER, part, source, BF16).step(shape)
    return float(times.latency_ms[0]), float(times.by_provenance_ms[-1, 0] / times.latency_ms[0])


def configuration(batch: int, tokens: int) -> ConfigurationBatch:
    """One accelerator with a batch of prompts, or of sequences, of so many tokens."""
    one = np.ones(1, dtype=np.int64)
    return ConfigurationBatch(
        Layouts.of([Parallelism()]), batch * one, tokens * one, 0 * one, tokens * one, one
    )


def compared(
    part: Accelerator, device: Device, decoder: ReferenceDecoder
) -> list[tuple[str, float, float, float]]:
    """Steps with their predicted and measured times and the roofline's share. [ms]."""
    rows = []
    for phase, batch, tokens in (
        *(("prefill", *each) for each in PREFILLS),
        *(("decode", *each) for each in DECODES),
    ):
        asked = configuration(batch, tokens)
        found, roofline = predicted_ms(
            part, prefill_shape(asked) if phase == "prefill" else decode_shape(asked)
        )
        prompt = torch.randint(DECODER.vocab_size, (batch, tokens), device=device.where)
        if phase == "prefill":
            timing = stable_timing(lambda prompt=prompt: decoder.prefill(prompt), device, FASTEST)
        else:
            _, cache = decoder.prefill(prompt)
            last = prompt[:, -1:]
            timing = stable_timing(
                lambda last=last, cache=cache: decoder.decode(last, cache), device, FASTEST
            )
        rows.append((f"{phase} {batch} x {tokens}", found, timing.latency_us / 1e3, roofline))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--minutes", type=float, default=3.0, help="for the operators")
    parser.add_argument("--folder", type=Path, help="keeps the points, to go on from")
    options = parser.parse_args()
    torch.manual_seed(0)
    device = open_device(options.device)
    with tempfile.TemporaryDirectory() as temporary, torch.inference_mode():
        part = measured_part(device, options.folder or Path(temporary), options.minutes)
        rows = compared(part, device, ReferenceDecoder(DECODER, device.where))
    bar = BARS[device.where.type]
    print(f"\n{'step':20} {'predicted':>10} {'measured':>10} {'error':>7} {'roofline':>9}")
    for name, found, truth, roofline in rows:
        print(f"{name:20} {found:7.2f} ms {truth:7.2f} ms {found / truth - 1:+7.1%} {roofline:9.0%}")
    missed = [name for name, found, truth, _ in rows if abs(found / truth - 1) > bar]
    print(f"\n{len(rows) - len(missed)} of {len(rows)} steps within {bar:.0%}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
