"""Write docs/models-and-hardware.md from the packaged catalogue: python docs/generate_catalogue.py."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fleetplan.fleet.catalog import ModelFacts, accelerators, model_catalog
from fleetplan.fleet.inventory import Accelerator
from fleetplan.fleet.resolve import stored_weights
from fleetplan.perfmodel.architecture import ModelArchitecture, load_architecture

TARGET: Final = Path(__file__).with_name("models-and-hardware.md")

HEAD: Final = """\
# Models and hardware

`docs/generate_catalogue.py` generates this page from the catalogue; do not edit it.

## Models

`services.model` accepts an id, a short name, or the path of a `config.json`. The id of a quantised copy,
such as `RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic`, selects the model that it copies. For any other
published id, `plan import model ID --out model.json` fetches the config and states whether fleetplan
understands its architecture.

*Stored as* is the default data type of the weights if `precision` states none. *Context* is the longest
sequence that the config allows, in tokens. *Not priced* lists parts of the checkpoint whose time and memory
the model omits.
"""

MODELS: Final = """
| id | other names | billion parameters | stored as | context | not priced |
|---|---|---|---|---|---|
"""

HARDWARE: Final = """
## Hardware

`hardware` of pools and offers accepts these names and those of drivers, Kubernetes labels and clouds, such
as `NVIDIA H100 80GB HBM3` or `p5.48xlarge`. `hardware: {NAME: {like: PART}}` in a fleet file defines other
parts. Peaks are dense. *Operator times* is the source of predicted times: measured tables, tables of a
similar part carried over by the ratio of their rooflines, or a roofline alone. [accuracy.md](accuracy.md)
has the errors. `fleet/catalog/accelerators.yaml` has the source of every figure.

| name | vendor | GiB | memory GB/s | BF16 TFLOPS | FP8 TFLOPS | link GB/s | W | operator times |
|---|---|---|---|---|---|---|---|---|
"""

BILLION: Final = 1e9

MIXTURE: Final = 0.8
"""Share of its parameters that a token uses, below which both are told: embeddings alone make it 0.9."""


def page() -> str:
    """The whole page."""
    models = "".join(_model(facts) for facts in model_catalog().values())
    parts = "".join(_part(part) for part in accelerators().values())
    return HEAD + MODELS + models + HARDWARE + parts


def _model(facts: ModelFacts) -> str:
    architecture = load_architecture(facts.name, Path())
    context = architecture.max_context_tokens
    cells = (
        facts.name,
        ", ".join(facts.aliases),
        _parameters(architecture),
        stored_weights(facts.name, None, Path()),
        "" if context is None else f"{context:,}",
        ", ".join(_not_priced(architecture)),
    )
    return _row(cells)


def _parameters(architecture: ModelArchitecture) -> str:
    total, active = architecture.total_parameters / BILLION, architecture.active_parameters / BILLION
    return f"{total:.4g}" if active >= MIXTURE * total else f"{total:.4g}, active {active:.3g}"


def _not_priced(architecture: ModelArchitecture) -> Iterator[str]:
    for part in architecture.left_out:
        # Draft layers are priced by `techniques.speculative`.
        if part != "draft layers" and not (part == "vision tower" and architecture.vision is not None):
            yield part


def _part(part: Accelerator) -> str:
    cells = (
        part.name,
        part.vendor,
        f"{part.hbm_gib:g}",
        f"{part.hbm_gb_per_s:g}",
        f"{part.bf16_tflops:g}",
        "" if part.fp8_tflops is None else f"{part.fp8_tflops:g}",
        f"{part.scale_up_gb_per_s:g}",
        "" if part.tdp_w is None else f"{part.tdp_w:g}",
        _times(part),
    )
    return _row(cells)


def _times(part: Accelerator) -> str:
    if part.measured_system is None:
        return "roofline"
    how = "measured" if part.carried_figures is None else "carried over"
    return f"{how} ({part.measured_system})"


def _row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |\n"


def main() -> int:
    """Write the page."""
    TARGET.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"written to {TARGET}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
