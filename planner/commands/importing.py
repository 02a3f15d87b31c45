"""`plan import`: convert benchmark results, inventories, price lists and models of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fleetplan.planner.commands.import_options import Fragment, Token
from fleetplan.planner.commands.import_supply import (
    cloud_prices,
    focus,
    inventory,
    kubernetes,
    prices,
    skypilot,
    slurm,
)
from fleetplan.planner.commands.shared import output_folder
from fleetplan.planner.commands.terminal import console

import_app = typer.Typer(
    name="import",
    help="Read files of other tools: benchmarks, inventories, prices. Every row is "
    "imported, or skipped with a reason; units are converted during the import.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

FORMATS = ("vllm", "sglang", "aiperf", "guidellm", "inference-perf", "mlperf", "inferencex")
"""Formats of benchmark results; a test compares them with the implemented ones."""


def _formats(incomplete: str) -> list[str]:
    return [name for name in FORMATS if name.startswith(incomplete)]


@import_app.command("benchmark")
def benchmark(
    form: Annotated[
        str, typer.Argument(help="format of the files", metavar="|".join(FORMATS), autocompletion=_formats)
    ],
    files: Annotated[list[Path], typer.Argument(help="result files", metavar="FILE.json...")],
    out: Annotated[Path, typer.Option(help="CSV to write", metavar="BENCH.csv")],
    model: Annotated[str | None, typer.Option(help="HF id or path, if the files do not name it")] = None,
    served_as: Annotated[
        str | None, typer.Option(help="the server's name for --model in the files", metavar="NAME")
    ] = None,
    hardware: Annotated[str | None, typer.Option(help="a name of the catalogue")] = None,
    framework: Annotated[str | None, typer.Option(help="vllm, sglang or trtllm")] = None,
    framework_version: Annotated[str | None, typer.Option(help="version of the framework")] = None,
    weights: Annotated[str | None, typer.Option(help="data type, e.g. fp8")] = None,
    kv: Annotated[str | None, typer.Option(help="data type of the KV cache")] = None,
    tp: Annotated[int | None, typer.Option(help="tensor parallelism", min=1)] = None,
    pp: Annotated[int | None, typer.Option(help="pipeline parallelism", min=1)] = None,
    dp: Annotated[int | None, typer.Option(help="attention data parallelism", min=1)] = None,
    ep: Annotated[int | None, typer.Option(help="expert parallelism", min=1)] = None,
    cp: Annotated[int | None, typer.Option(help="context parallelism", min=1)] = None,
    input_tokens: Annotated[
        float | None, typer.Option(help="mean prompt, if the files do not state it (mlperf)", min=1)
    ] = None,
) -> None:
    """Convert benchmark results to a table for `plan calibrate`.

    Example: plan import benchmark vllm result.json --hardware H200-SXM --tp 2 --weights fp8
    --framework-version 0.24.0 --out bench.csv
    """
    from fleetplan.planner.commands.run_import import run_benchmarks
    from fleetplan.planner.importing.benchmark_rows import MeasuredDeployment

    given = MeasuredDeployment(model, hardware, framework, framework_version, weights, kv, tp, pp, dp, ep, cp)
    run_benchmarks(form, files, given, out, console(stderr=True), input_tokens, served_as)


import_app.command("inventory")(inventory)
import_app.command("prices")(prices)
import_app.command("kubernetes")(kubernetes)
import_app.command("slurm")(slurm)
import_app.command("skypilot")(skypilot)
import_app.command("cloud-prices")(cloud_prices)
import_app.command("focus")(focus)


@import_app.command("model")
def model(
    reference: Annotated[
        str,
        typer.Argument(
            help="config.json, its folder, a name of the catalogue; with --out an id of the Hub",
            metavar="MODEL",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="fetch the config of a published id into this file", metavar="CONFIG.json"),
    ] = None,
    revision: Annotated[
        str | None, typer.Option(help="revision of a published id; default: the newest")
    ] = None,
) -> None:
    """Check that a model is supported; print its architecture.

    Otherwise the exit code is 2 and the output states the reason.

    Examples: plan import model ./my-model/config.json;
    plan import model Qwen/Qwen3-32B --out qwen3-32b.json
    """
    from fleetplan.planner.commands.run_import import describe_model, fetch_model

    if out is None:
        describe_model(reference, console())
    else:
        fetch_model(reference, revision, out, console(), console(stderr=True))


@import_app.command("dcgm")
def dcgm(
    source: Annotated[
        str,
        typer.Argument(
            help="URL of a server, a folder of saved answers, or a file of readings",
            metavar="URL|FOLDER|FILE",
        ),
    ],
    out: Fragment,
    days: Annotated[
        float, typer.Option(help="days of history to query from a server", min=0.01, max=400)
    ] = 7.0,
    step: Annotated[int, typer.Option(help="step of the range query [s]", min=1, max=86_400)] = 300,
    token_file: Token = None,
    hardware: Annotated[
        str | None, typer.Option(help="kind of the cards of dcgmi dmon", metavar="NAME")
    ] = None,
) -> None:
    """Convert power readings of the DCGM exporter.

    Writes the idle and full power of hardware.

    A folder holds answers of /api/v1/query_range to DCGM_FI_DEV_POWER_USAGE in power.json and to
    DCGM_FI_DEV_GPU_UTIL in utilisation.json. A file holds the output of dcgmi dmon -e 155,203 (--hardware
    names its cards), or successive pages of the exporter's /metrics. Example: plan import dcgm
    http://localhost:9090 --out power.yaml
    """
    from fleetplan.planner.commands.run_prometheus import run_dcgm

    run_dcgm(source, out, days, step, token_file, hardware, console(stderr=True))


@import_app.command("trace")
def trace(
    file: Annotated[Path, typer.Argument(help="trace of requests", metavar="TRACE")],
    service: Annotated[str, typer.Option(help="name of the service", metavar="NAME")],
    out: Annotated[
        Path,
        typer.Option(help="folder for the fragment and its lengths", metavar="DIR", callback=output_folder),
    ],
    classes: Annotated[int, typer.Option(help="request classes by prompt length", min=1, max=4)] = 1,
    force: Annotated[bool, typer.Option("--force", help="overwrite existing files")] = False,
) -> None:
    """Convert recorded requests to the traffic of a service.

    Writes request classes, lengths, burstiness and demand.

    Supported formats are Azure's LLM inference traces, BurstGPT, Mooncake, and CSV files with arrival_s,
    input_tokens, output_tokens and, if known, session and prefix_tokens; each plain, as .gz or .zst, or as
    Parquet. Example: plan import trace AzureLLMInferenceTrace_conv.csv --service chat --classes 2 --out
    traffic
    """
    from fleetplan.planner.importing.traces import run_trace

    run_trace(file, service, classes, out, force, console(stderr=True))


@import_app.command("prometheus")
def prometheus(
    source: Annotated[
        str, typer.Argument(help="URL of a server, or a folder of saved answers", metavar="URL|FOLDER")
    ],
    system: Annotated[
        str,
        typer.Option(
            help="system whose metrics to read", metavar="vllm|sglang|trtllm|dynamo|envoy-ai-gateway"
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="folder for the fragment and its lengths", metavar="DIR", callback=output_folder),
    ] = None,
    days: Annotated[
        float, typer.Option(help="days of history to query from a server", min=0.01, max=400)
    ] = 7.0,
    step: Annotated[int, typer.Option(help="step of the range query [s]", min=1, max=86_400)] = 300,
    percentile: Annotated[
        float, typer.Option(help="percentile of rates that becomes the demand", min=0, max=100)
    ] = 99.0,
    slices: Annotated[int, typer.Option(help="equal parts of the day, in UTC", min=1, max=24)] = 1,
    region_label: Annotated[str | None, typer.Option(help="label that names the region")] = None,
    region: Annotated[str | None, typer.Option(help="region of series without a region label")] = None,
    token_file: Token = None,
    save: Annotated[Path | None, typer.Option(help="folder in which to save a server's answers")] = None,
    queries: Annotated[bool, typer.Option("--queries", help="print the range queries and exit")] = False,
    force: Annotated[bool, typer.Option("--force", help="overwrite existing files")] = False,
) -> None:
    """Convert Prometheus metrics to demand.

    Writes the rates, lengths and daily profile of services.

    A folder holds an answer of /api/v1/query_range in NAME.json for each query that --queries prints. A
    server may need a bearer token (--token-file) or a name and password (https://name:password@host).
    Example: plan import prometheus http://localhost:9090 --system vllm --slices 4 --out demand
    """
    from fleetplan.planner.commands.run_prometheus import PrometheusOptions, print_queries, run_prometheus

    asked = PrometheusOptions(
        source, system, days, step, percentile, slices, region_label, region, token_file
    )
    if queries:
        print_queries(asked, console())
        return
    run_prometheus(asked, out, save, force, console(stderr=True))
