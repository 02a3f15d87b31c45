"""Build the evaluator of a model on an accelerator from their names."""

from __future__ import annotations

from pathlib import Path

from fleetplan.fleet.inventory import Accelerator, Precision, Techniques
from fleetplan.perfmodel.architecture import load_architecture
from fleetplan.perfmodel.evaluator.maturity import matured
from fleetplan.perfmodel.evaluator.model_memory import NO_TECHNIQUES
from fleetplan.perfmodel.evaluator.phases import Evaluator
from fleetplan.perfmodel.optables import operator_source
from fleetplan.perfmodel.steps import (
    TODAYS_SOFTWARE,
    Software,
    expert_kernels,
    part_dtypes,
    state_slots,
)


def build_evaluator(
    model: str,
    accelerator: Accelerator,
    framework: str,
    precision: Precision,
    folder: Path,
    techniques: Techniques = NO_TECHNIQUES,
    software: Software = TODAYS_SOFTWARE,
) -> Evaluator:
    """Build the evaluator of `model` on `accelerator`.

    Parameters
    ----------
    model : str
        HF id or alias of the catalogue, or the path of a config relative to `folder`.
    accelerator : Accelerator
        Accelerator.
    framework : str
        trtllm, sglang or vllm: whose measured operators are read.
    precision : Precision
        Data types of weights and KV cache.
    folder : Path
        Folder of relative paths.
    techniques : Techniques
        Techniques.
    software : Software
        Its date, for software that became faster, and how it was started.

    Raises
    ------
    InputError
        No such model, or an unreadable config.
    UnsupportedArchitecture
        A decoder that is not understood.
    """
    architecture = load_architecture(model, folder)
    weights = part_dtypes(architecture, precision).dense_ffn
    accelerator = matured(accelerator, framework, software.date, weights)
    source = operator_source(
        accelerator,
        framework,
        activation_scales=software.activation_scales,
        expert_kernels=expert_kernels(
            framework, accelerator.measured_system, architecture.model_type, software.date
        ),
    )
    return Evaluator(
        architecture,
        accelerator,
        source,
        precision,
        techniques=techniques,
        software=software,
        state_slots=state_slots(
            framework, accelerator.vendor, architecture, software.date, software.prefix_cache
        ),
    )
