"""`plan landscape`: evaluate every configuration of a service or model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from fleetplan.planner.commands.shared import Assignments, Scenarios, csv_file, load, output_folder
from fleetplan.planner.commands.terminal import console

MOST_WHOLE: Final = 10**9
"""Largest integer of an option, as in a fleet file."""

MOST_BATCH: Final = 100_000
"""Largest batch for `--every-batch`, far above the capacity of any KV cache."""

MOST_ROWS: Final = 2**63 - 1
"""Largest row number of a landscape, which has 64 bits."""

FleetIfAny = Annotated[
    Path | None, typer.Argument(help="the fleet file", metavar="[FLEET.yaml]", show_default=False)
]

# Inputs of a question without a fleet file.
ModelName = Annotated[str | None, typer.Option(help="model: HF id, alias or config.json")]
HardwareNames = Annotated[str | None, typer.Option(help="names of the catalogue, with commas")]
PromptTokens = Annotated[int | None, typer.Option("--input", help="new prompt tokens", min=1, max=MOST_WHOLE)]
GeneratedTokens = Annotated[
    int | None, typer.Option("--output", help="generated tokens", min=1, max=MOST_WHOLE)
]
ContextTokens = Annotated[
    int | None, typer.Option(help="context length; tokens beyond --input are cached", min=1, max=MOST_WHOLE)
]
LatencyLimit = Annotated[float | None, typer.Option(help="limit [ms]", min=0)]
WeightTypes = Annotated[
    str | None,
    typer.Option(help="data types of the weights, with commas (default: as the checkpoint stores them)"),
]
KvTypes = Annotated[str, typer.Option("--kv", help="data types of the KV cache, with commas")]
FrameworkName = Annotated[str, typer.Option(help="trtllm, sglang or vllm")]
PriceColumn = Annotated[str, typer.Option(help="column of the price book")]

# Search space.
LargestReplica = Annotated[int | None, typer.Option(help="largest replica", min=1, max=MOST_WHOLE)]
LargestBatch = Annotated[
    int | None, typer.Option(help="try every batch up to this one", min=1, max=MOST_BATCH)
]

# Output files and display.
Condition = Annotated[
    str | None, typer.Option("--filter", help="rows to show and write, e.g. 'tp <= 8 and batch >= 16'")
]
Usable = Annotated[bool, typer.Option("--usable", help="omit excluded rows from the files")]
CsvTable = Annotated[
    Path | None, typer.Option("--csv", help="write all rows", metavar="FILE", callback=csv_file)
]
ParquetTable = Annotated[Path | None, typer.Option(help="write all rows", metavar="FILE")]
PlotFolder = Annotated[
    Path | None, typer.Option(help="draw into this folder", metavar="DIR", callback=output_folder)
]
RowNumber = Annotated[int | None, typer.Option(help="explain one row", metavar="ROW", min=0, max=MOST_ROWS)]


def landscape(
    fleet_file: FleetIfAny = None,
    scenario: Scenarios = None,
    assignment: Assignments = None,
    service: Annotated[str | None, typer.Option(help="a service of the fleet")] = None,
    model: ModelName = None,
    hardware: HardwareNames = None,
    input_tokens: PromptTokens = None,
    output_tokens: GeneratedTokens = None,
    context: ContextTokens = None,
    ttft: LatencyLimit = None,
    tpot: LatencyLimit = None,
    weights: WeightTypes = None,
    kv: KvTypes = "bf16",
    framework: FrameworkName = "vllm",
    prices: PriceColumn = "rental_3y",
    max_accelerators: LargestReplica = None,
    every_batch: LargestBatch = None,
    condition: Condition = None,
    usable: Usable = False,
    csv: CsvTable = None,
    parquet: ParquetTable = None,
    plot: PlotFolder = None,
    plot_format: Annotated[str, typer.Option(help="svg or png")] = "svg",
    explain: RowNumber = None,
    menu: Annotated[bool, typer.Option("--menu", help="cost of each latency class")] = False,
) -> None:
    """Evaluate every configuration of a service or model.

    Prints counts, the best rows and the Pareto frontier.

    Examples: plan landscape fleet.yaml --service chat --plot plots; plan landscape --model llama3-70b
    --hardware H200-SXM,H100-SXM --input 2000 --output 150 --ttft 350 --tpot 30
    """
    from fleetplan.planner.commands.run_landscape import Outputs, run_landscape
    from fleetplan.planner.landscape.options import (
        ModelOptions,
        refuse_without_fleet,
        search_of,
        write_format,
    )
    from fleetplan.planner.landscape.question import question_of_service

    errors = console(stderr=True)
    search = search_of(max_accelerators, every_batch)
    asked = ModelOptions(
        model, hardware, input_tokens, output_tokens, context, ttft, tpot, weights, kv, framework, prices
    )
    if fleet_file is None:
        refuse_without_fleet(service, scenario, assignment)
        question = asked.question(search)
    else:
        asked.refuse_beside_fleet()
        question = question_of_service(load(fleet_file, scenario, assignment, errors), service, search)
    outputs = Outputs(csv, parquet, plot, write_format(plot_format), condition, usable, explain, menu)
    run_landscape(question, outputs, console(), errors)
