"""Run `plan optables measure`: open the device, measure, and write the table and the hardware figures."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fleetplan.fleet.catalog import accelerators, efficiency_profiles
from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.figures import counted
from fleetplan.fleet.files import write_whole
from fleetplan.fleet.inventory import Accelerator, Fleet, Precision
from fleetplan.perfmodel.architecture import ModelArchitecture, load_architecture
from fleetplan.perfmodel.microbench.adaptive import NodeError
from fleetplan.perfmodel.microbench.journal import Journal, Origin
from fleetplan.perfmodel.microbench.points import Measurement, Point
from fleetplan.perfmodel.microbench.session import (
    MeasuringGoal,
    MeasuringOutcome,
    MeasuringProgress,
    run_group_session,
    run_session,
)
from fleetplan.perfmodel.microbench.sites import (
    Site,
    group_sites,
    least_read_bytes,
    model_sites,
    standard_sites,
)
from fleetplan.perfmodel.microbench.table_files import write_table
from fleetplan.perfmodel.microbench.timing import TimingEffort

if TYPE_CHECKING:
    from fleetplan.perfmodel.microbench.device import Device
    from fleetplan.perfmodel.microbench.figures import MeasuredFigures

FIGURES_NAME: Final = "hardware.yaml"
MEASURED_PROFILE: Final = "nvidia-fitted"
"""Roofline constants of hardware missing from the catalogue; they only interpolate between measurements."""

_TENSOR_PARALLEL: Final = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class MeasureOptions:
    """Options of `plan optables measure`.

    Attributes
    ----------
    hardware : str
        Name of the hardware in plans.
    out : Path
        Folder of the journal, the table and the figures.
    device : str
        cpu, cuda or cuda:NUMBER.
    threads : int
        Number of threads of a CPU.
    allow_busy : bool
        Whether to measure even if others use the GPU.
    ranks : int
        Number of processes for collectives; 1 for none.
    fleet : Fleet or None
        Fleet whose models determine the measurements; None for a grid that covers most models.
    """

    hardware: str
    out: Path
    device: str
    threads: int
    allow_busy: bool
    ranks: int
    fleet: Fleet | None


@dataclass(frozen=True, slots=True)
class Measured:
    """Result of a measurement.

    Attributes
    ----------
    table, figures : Path
        Paths of the files.
    journal : Journal
        All points, including those of earlier runs.
    outcomes : tuple[MeasuringOutcome, ...]
        Outcomes for operators and for collectives.
    """

    table: Path
    figures: Path
    journal: Journal
    outcomes: tuple[MeasuringOutcome, ...]

    @property
    def errors(self) -> tuple[NodeError, ...]:
        """Errors of measurements left out in cross-validation, worst first."""
        found = [error for outcome in self.outcomes for error in outcome.errors]
        return tuple(sorted(found, key=lambda each: -each.ratio))


def measure_machine(
    wanted: MeasureOptions,
    goal: MeasuringGoal,
    effort: TimingEffort,
    progress: MeasuringProgress,
    say: Callable[[str], None],
) -> Measured:
    """Measure, and write the results at every end: target reached, time over, or interruption.

    Raises
    ------
    InputError
        torch is not installed, the device is unusable, or the folder holds points of another device.
    """
    _need_torch()
    import torch

    from fleetplan.perfmodel.microbench.control import Control
    from fleetplan.perfmodel.microbench.device import open_device
    from fleetplan.perfmodel.microbench.figures import measured_figures
    from fleetplan.perfmodel.microbench.single import measure_alone

    models = _models(wanted)
    reuse_bytes = least_read_bytes(models, _splits(wanted)) if models else None
    device = open_device(wanted.device, wanted.threads, wanted.allow_busy, reuse_bytes)
    origin = Origin(
        wanted.hardware,
        device.name,
        f"torch {torch.__version__}",
        device.arena.size_bytes // 2**20,
    )
    journal = Journal(wanted.out, origin)
    if journal.measured:
        say(f"{journal.path}: continues after {counted(len(journal.measured), 'point')}")
    with torch.inference_mode():
        with _kept_on_cores(wanted):
            figures = measured_figures(device, effort)
        part = _part(wanted, figures)
        sites = model_sites(models, _splits(wanted)) if models else _standard_sites(device)
        outcomes: list[MeasuringOutcome] = []
        try:
            with _kept_on_cores(wanted):
                control = Control(device)
                outcomes.append(
                    run_session(
                        sites,
                        lambda each: measure_alone(each, device, effort, control),
                        journal,
                        part,
                        goal,
                        progress,
                    )
                )
            if wanted.ranks > 1:
                outcomes.append(_groups(wanted, journal, part, goal, effort, progress))
        finally:
            # An interrupted run writes a table of its points.
            table = write_table(journal, origin, datetime.now(UTC).date().isoformat(), wanted.out)
            write_whole(wanted.out / FIGURES_NAME, _figures_text(wanted.hardware, origin, figures))
    return Measured(table, wanted.out / FIGURES_NAME, journal, tuple(outcomes))


def _need_torch() -> None:
    try:
        import torch  # noqa: F401
    except ImportError as error:
        hint = "pip install 'fleetplan[microbench]'"
        raise InputError([Issue("plan optables measure", 0, 0, "", "needs torch", hint)]) from error


def _groups(
    wanted: MeasureOptions,
    journal: Journal,
    part: Accelerator,
    goal: MeasuringGoal,
    effort: TimingEffort,
    progress: MeasuringProgress,
) -> MeasuringOutcome:
    from fleetplan.perfmodel.microbench.ranks import measure_groups

    def keep(found: Measurement | tuple[Point, str]) -> None:
        if isinstance(found, Measurement):
            journal.add(found)
            progress.ends(found, "")
        else:
            journal.skip(*found)
            progress.ends(None, found[1])

    sizes = [size for size in _TENSOR_PARALLEL if 1 < size <= wanted.ranks]
    return run_group_session(
        group_sites(sorted({*sizes, wanted.ranks})),
        lambda points: measure_groups(points, wanted.device.partition(":")[0], effort, keep),
        journal,
        part,
        goal,
        progress,
    )


def _kept_on_cores(wanted: MeasureOptions) -> AbstractContextManager[object]:
    """Pin the threads of a CPU to their cores; the later processes of collectives are not pinned."""
    from fleetplan.perfmodel.microbench.device import Pinned

    return Pinned(wanted.threads) if wanted.device == "cpu" else nullcontext()


def _splits(wanted: MeasureOptions) -> list[int]:
    """Return the degrees of tensor parallelism to measure for."""
    return [size for size in _TENSOR_PARALLEL if size <= max(1, wanted.ranks)]


def _standard_sites(device: Device) -> list[Site]:
    return standard_sites([dtype for dtype in ("bf16", "fp8") if not device.missing(dtype)])


def _models(wanted: MeasureOptions) -> list[tuple[ModelArchitecture, Precision]]:
    """Return the models of the fleet with their precisions, or an empty list without a fleet."""
    if wanted.fleet is None:
        return []
    models = {
        (service.model, service.precision)
        for service in wanted.fleet.services
        if service.model is not None and not service.variants
    }
    models |= {
        (variant.model, Precision(variant.weights, variant.kv))
        for service in wanted.fleet.services
        for variant in service.variants
    }
    if not models:
        message = "no service names a model, so there is nothing to measure"
        raise InputError([Issue(str(wanted.fleet.path), 1, 1, "services", message, "leave out --for")])
    folder = wanted.fleet.path.parent
    return [(load_architecture(model, folder), precision) for model, precision in sorted(models, key=str)]


def _part(wanted: MeasureOptions, figures: MeasuredFigures) -> Accelerator:
    """Return the hardware with its figures: from the fleet, from the catalogue, or as measured."""
    known = None if wanted.fleet is None else wanted.fleet.hardware.get(wanted.hardware)
    if known is not None and known.accelerator is not None:
        return known.accelerator
    if wanted.hardware in accelerators():
        return accelerators()[wanted.hardware]
    stand_in = next(iter(accelerators().values()))
    return replace(
        stand_in,
        name=wanted.hardware,
        vendor="own",
        bf16_tflops=figures.bf16_tflops,
        fp8_tflops=None,
        fp4_tflops=None,
        int8_tops=None,
        hbm_gib=figures.memory_gib,
        hbm_gb_per_s=figures.memory_gb_per_s,
        scale_up_gb_per_s=figures.memory_gb_per_s,
        measured_system=None,
        operator_tables=(),
        efficiency=efficiency_profiles()[MEASURED_PROFILE],
        sources=("measured",),
    )


def _figures_text(hardware: str, origin: Origin, figures: MeasuredFigures) -> str:
    """Return a hardware block for a fleet file, with comments on figures that were not measured."""
    day = datetime.now(UTC).date().isoformat()
    lines = [
        f"# Measured by plan optables measure on {origin.device}, {origin.software}, {day}.",
        "# Figures that were reached; those of a data sheet are higher.",
        "hardware:",
        f"  {hardware}:",
        f"    bf16_tflops: {figures.bf16_tflops:.4g}",
        f"    hbm_gib: {figures.memory_gib:.4g}  # free at that time",
        f"    hbm_gb_per_s: {figures.memory_gb_per_s:.4g}  # read and written by a copy",
        f"    scale_up_gb_per_s: {figures.memory_gb_per_s:.4g}  # not measured: that of the memory",
        f"    profile: {MEASURED_PROFILE}",
        "    optables: optable.csv",
    ]
    for name, value in (
        ("host to device", figures.host_to_device_gb_per_s),
        ("device to host", figures.device_to_host_gb_per_s),
    ):
        if value is not None:
            lines.append(
                f"# Copies from pinned memory, {name}: {value:.4g} GB/s (techniques.offload.gb_per_s)."
            )
    return "\n".join(lines) + "\n"
