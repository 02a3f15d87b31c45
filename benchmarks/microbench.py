"""Measured operators of this machine predict a decoder that runs on it.

    python benchmarks/microbench.py [--device cpu|cuda] [--minutes 3] [--folder FOLDER]

Operators of a decoder of eight layers are measured as `plan optables measure` does it, on a GPU or on one
thread that stays on its core; then its prefill and decode steps are predicted from that table alone and run
in torch. Of both the median of blocks counts, on a CPU in processor time, and what was measured beside a slow
control is measured again, so that other processes of the machine disturb them least. In the end some
operators are measured once more, to show whether the machine is still the same. Exits with 1 where a step is
off by more than the bar: 20 % on a CPU, 10 % on a GPU. Needs the extra `microbench`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import torch

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Accelerator, Precision
from fleetplan.perfmodel.architecture import (
    DenseFfn,
    GroupedQueryAttention,
    LayerGroup,
    ModelArchitecture,
)
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.microbench.control import Control, calm_control_us
from fleetplan.perfmodel.microbench.device import Device, Pinned, open_device
from fleetplan.perfmodel.microbench.figures import measured_figures
from fleetplan.perfmodel.microbench.journal import Journal, Origin
from fleetplan.perfmodel.microbench.kernels import (
    fastest_kernel,
    prompt_attentions,
    token_attentions,
)
from fleetplan.perfmodel.microbench.operands import Kernel, Run
from fleetplan.perfmodel.microbench.reference import ReferenceDecoder
from fleetplan.perfmodel.microbench.session import MeasuringGoal, run_session
from fleetplan.perfmodel.microbench.single import measure_alone
from fleetplan.perfmodel.microbench.sites import Extent, least_read_bytes, model_sites
from fleetplan.perfmodel.microbench.table_files import write_table
from fleetplan.perfmodel.microbench.timing import TimingEffort, stable_timing
from fleetplan.perfmodel.optables import operator_source
from fleetplan.perfmodel.parallelism import Layouts, Parallelism
from fleetplan.perfmodel.steps import ConfigurationBatch, StepShape, decode_shape, prefill_shape

BARS: Final = {"cpu": 0.20, "cuda": 0.10}
"""Largest error of a step."""

BF16: Final = Precision("bf16", "bf16")

Step = tuple[str, int, int]
"""Phase, batch and tokens of a step."""


@dataclass(frozen=True, slots=True)
class Reference:
    """What is predicted and run: a decoder, its steps, and the most tokens of a measured operator."""

    decoder: ModelArchitecture
    steps: tuple[Step, ...]
    step_tokens: int


def eight_layers(name: str, hidden: int, attention: GroupedQueryAttention, width: int) -> ModelArchitecture:
    """A dense decoder of eight layers."""
    groups = (LayerGroup(8, attention, DenseFfn(width)),)
    return ModelArchitecture(name, "llama", hidden, 8192, tied_embeddings=False, groups=groups)


REFERENCES: Final = {
    "cpu": Reference(
        eight_layers("small", 1024, GroupedQueryAttention(16, 4, 64, 64), 2816),
        (
            ("prefill", 1, 128),
            ("prefill", 1, 512),
            ("prefill", 4, 256),
            ("prefill", 1, 2048),
            ("decode", 1, 256),
            ("decode", 8, 512),
            ("decode", 32, 256),
            ("decode", 16, 1024),
        ),
        2048,
    ),
    "cuda": Reference(
        eight_layers("llama-3.1-8b", 4096, GroupedQueryAttention(32, 8, 128, 128), 14336),
        (
            ("prefill", 1, 512),
            ("prefill", 1, 2048),
            ("prefill", 4, 2048),
            ("prefill", 1, 8192),
            ("decode", 1, 1024),
            ("decode", 16, 2048),
            ("decode", 64, 2048),
            ("decode", 128, 1024),
        ),
        8192,
    ),
}
"""By the device: a small decoder for one core, layers of Llama 3.1 8B for a GPU."""

EFFORT: Final = TimingEffort()
ROUNDS: Final = 8
"""So often are the steps measured again that were measured beside a slow control."""

CALM_STEP_RATIO: Final = 1.05
"""A step is measured again where the control beside it took longer than in calm times by this factor."""

AGAIN: Final = 8
"""Operators that are measured once more in the end."""


def measured_part(
    device: Device, control: Control, reference: Reference, folder: Path, minutes: float
) -> tuple[Accelerator, Journal]:
    """Measure the decoder's operators; the part that plans with them and nothing else, and the points."""
    figures = measured_figures(device, EFFORT)
    part = replace(
        accelerators()["H200-SXM"],
        name="this machine",
        measured_system=None,
        bf16_tflops=figures.bf16_tflops,
        hbm_gb_per_s=figures.memory_gb_per_s,
        hbm_gib=figures.memory_gib,
    )
    reuse_mib = device.arena.size_bytes // 2**20
    origin = Origin(part.name, device.name, f"torch {torch.__version__}", reuse_mib)
    journal = Journal(folder, origin)
    outcome = run_session(
        model_sites([(reference.decoder, BF16)], (1,)),
        lambda each: measure_alone(each, device, EFFORT, control),
        journal,
        part,
        MeasuringGoal(target_ratio=0.10, budget_s=minutes * 60, extent=Extent(reference.step_tokens)),
    )
    table = write_table(journal, origin, datetime.now(UTC).date().isoformat(), folder)
    median = np.median([each.ratio for each in outcome.errors])
    print(f"{device.name}, torch {torch.__version__}, {datetime.now(UTC).date()}")
    print(f"{figures.bf16_tflops:.2f} TFLOPS BF16, copies at {figures.memory_gb_per_s:.1f} GB/s")
    early = ", time was up" if outcome.over_budget else ""
    print(f"{len(journal.measured)} points, median error of one that is left out {median:.1%}{early}")
    print(f"{outcome.disturbed} of them beside a slow control, after being repeated")
    return replace(part, operator_tables=(str(table),)), journal


def predicted_ms(decoder: ModelArchitecture, part: Accelerator, shape: StepShape) -> tuple[float, float]:
    """Time of a step by the table, and the share of it that the roofline gave. [ms]."""
    source = operator_source.__wrapped__(part, "vllm")
    times = Evaluator(decoder, part, source, BF16).step(shape)
    return float(times.latency_ms[0]), float(times.by_provenance_ms[-1, 0] / times.latency_ms[0])


def configuration(batch: int, tokens: int) -> ConfigurationBatch:
    """One accelerator with a batch of prompts, or of sequences, of so many tokens."""
    one = np.ones(1, dtype=np.int64)
    return ConfigurationBatch(
        Layouts.of([Parallelism()]), batch * one, tokens * one, 0 * one, tokens * one, one
    )


@dataclass(frozen=True, slots=True)
class ComparedStep:
    """A step: its times, the share of the roofline, and the control over that of calm times."""

    name: str
    predicted_ms: float
    measured_ms: float
    roofline_ratio: float
    control_ratio: float

    @property
    def error(self) -> float:
        """Predicted over measured, less one."""
        return self.predicted_ms / self.measured_ms - 1

    @property
    def error_at_equal_speed(self) -> float:
        """The same if the table were of a machine that is as slow as the control was beside the step."""
        return self.control_ratio * self.predicted_ms / self.measured_ms - 1


def step_kernel(phase: str, prompt: torch.Tensor, decoder: ReferenceDecoder, device: Device) -> Kernel:
    """A step of the decoder, with the fastest attention as in the table."""
    if phase == "prefill":
        runs: list[Run] = [
            partial(decoder.prefill, prompt, attend) for attend in prompt_attentions(device.where)
        ]
    else:
        _, cache = decoder.prefill(prompt)
        last = prompt[:, -1:]
        runs = [partial(decoder.decode, last, cache, attend) for attend in token_attentions(device.where)]
    return fastest_kernel([Kernel.of(run) for run in runs], device, f"{phase} of {tuple(prompt.shape)}")


@dataclass(frozen=True, slots=True)
class Attempt:
    """The time of a measured step, and of the control beside it. [us]."""

    control_us: float
    step_us: float


def attempt(
    step: Step, reference: Reference, decoder: ReferenceDecoder, device: Device, control: Control
) -> Attempt:
    """Measure a step between two controls."""
    phase, batch, tokens = step
    prompt = torch.randint(reference.decoder.vocab_size, (batch, tokens), device=device.where)
    found = step_kernel(phase, prompt, decoder, device)
    before_us = control.time_us()
    timing = stable_timing(found, device, EFFORT)
    return Attempt(max(before_us, control.time_us()), timing.latency_us)


def calm_attempts(
    device: Device, control: Control, reference: Reference, calm_us: float
) -> dict[Step, Attempt]:
    """Measure all steps, then those again that were disturbed; of each the calmest attempt."""
    longest = max(tokens for _, _, tokens in reference.steps)
    decoder = ReferenceDecoder(reference.decoder, device.where, longest)
    calmest: dict[Step, Attempt] = {}
    for _ in range(1 + ROUNDS):
        for step in reference.steps:
            if step in calmest and calmest[step].control_us <= CALM_STEP_RATIO * calm_us:
                continue
            again = attempt(step, reference, decoder, device, control)
            if step not in calmest or again.control_us < calmest[step].control_us:
                calmest[step] = again
    return calmest


def compared(
    part: Accelerator, device: Device, control: Control, reference: Reference, calm_us: float
) -> list[ComparedStep]:
    """Predict and measure the steps."""
    rows = []
    attempts = calm_attempts(device, control, reference, calm_us)
    for (phase, batch, tokens), found in attempts.items():
        asked = configuration(batch, tokens)
        shape = prefill_shape(asked) if phase == "prefill" else decode_shape(asked)
        predicted, roofline = predicted_ms(reference.decoder, part, shape)
        name = f"{phase} {batch} x {tokens}"
        rows.append(ComparedStep(name, predicted, found.step_us / 1e3, roofline, found.control_us / calm_us))
    return rows


def print_drift(journal: Journal, device: Device) -> None:
    """Measure some operators once more, evenly over the table."""
    listed = list(journal.measured.values())[:: max(1, len(journal.measured) // AGAIN)]
    ratios = sorted(
        (measure_alone(each.point, device, EFFORT).latency_us / each.latency_us, each.point.label)
        for each in listed
    )
    (low, lowest), (high, highest) = ratios[0], ratios[-1]
    middle = np.median([ratio for ratio, _ in ratios])
    print(f"{len(ratios)} operators measured once more take {middle:.2f} times as long:")
    print(f"  from {low:.2f} ({lowest}) to {high:.2f} ({highest})")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:NUMBER")
    parser.add_argument("--minutes", type=float, default=3.0, help="for the operators")
    parser.add_argument("--folder", type=Path, help="keeps the points, to go on from")
    options = parser.parse_args()
    torch.manual_seed(0)
    # What is no device is refused when it is opened.
    reference = REFERENCES["cuda" if options.device.startswith("cuda") else "cpu"]
    read_bytes = least_read_bytes([(reference.decoder, BF16)], (1,))
    device = open_device(options.device, reuse_bytes=read_bytes)
    on_cpu = device.where.type == "cpu"
    with (
        tempfile.TemporaryDirectory() as temporary,
        torch.inference_mode(),
        Pinned(1) if on_cpu else nullcontext(),
    ):
        control = Control(device)
        folder = options.folder or Path(temporary)
        part, journal = measured_part(device, control, reference, folder, options.minutes)
        calm_us = calm_control_us(journal.measured.values()) or control.time_us()
        rows = compared(part, device, control, reference, calm_us)
        print_drift(journal, device)
    bar = BARS[device.where.type]
    print(
        f"\n{'step':20} {'predicted':>10} {'measured':>10} {'error':>7}"
        f" {'roofline':>9} {'control':>8} {'error at equal speed':>21}"
    )
    for each in rows:
        print(
            f"{each.name:20} {each.predicted_ms:7.2f} ms {each.measured_ms:7.2f} ms {each.error:+7.1%}"
            f" {each.roofline_ratio:9.0%} {each.control_ratio:8.2f} {each.error_at_equal_speed:+21.1%}"
        )
    errors = [abs(each.error) for each in rows]
    missed = sum(error > bar for error in errors)
    print(f"\nmedian error {np.median(errors):.1%}, worst {max(errors):.1%}")
    print(f"{len(rows) - missed} of {len(rows)} steps within {bar:.0%}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
