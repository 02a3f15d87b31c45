"""`plan import`: benchmark results, inventories, price lists and models of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fleetplan.planner.commands.import_options import (
    AsOf,
    CapexOfHost,
    Fragment,
    HourlyRent,
    NodeKind,
    NodeRegion,
    SpotShare,
    Token,
    WantedParts,
    WantedRegions,
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
"""Formats of benchmark results; a test holds them to those that there are."""


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
    hardware: Annotated[str | None, typer.Option(help="a name of the catalogue")] = None,
    framework: Annotated[str | None, typer.Option(help="vllm, sglang or trtllm")] = None,
    framework_version: Annotated[str | None, typer.Option(help="of the framework")] = None,
    weights: Annotated[str | None, typer.Option(help="data type, e.g. fp8")] = None,
    kv: Annotated[str | None, typer.Option(help="data type of the KV cache")] = None,
    tp: Annotated[int | None, typer.Option(help="tensor parallelism", min=1)] = None,
    pp: Annotated[int | None, typer.Option(help="pipeline parallelism", min=1)] = None,
    dp: Annotated[int | None, typer.Option(help="attention data parallelism", min=1)] = None,
    ep: Annotated[int | None, typer.Option(help="expert parallelism", min=1)] = None,
    cp: Annotated[int | None, typer.Option(help="context parallelism", min=1)] = None,
    input_tokens: Annotated[
        float | None, typer.Option(help="mean prompt, if the files do not say (mlperf)", min=1)
    ] = None,
) -> None:
    """Convert benchmark results to a table for `plan calibrate`.

    Example: plan import benchmark vllm result.json --hardware H200-SXM --tp 2 --weights fp8
    --framework-version 0.24.0 --out bench.csv
    """
    from fleetplan.planner.commands.run_import import run_benchmarks
    from fleetplan.planner.importing.benchmark_rows import MeasuredDeployment

    given = MeasuredDeployment(model, hardware, framework, framework_version, weights, kv, tp, pp, dp, ep, cp)
    run_benchmarks(form, files, given, input_tokens, out, console(stderr=True))


@import_app.command("inventory")
def inventory(
    file: Annotated[Path, typer.Argument(help="CSV of the installed hardware", metavar="INVENTORY.csv")],
    out: Annotated[Path, typer.Option(help="fragment of a fleet file to write", metavar="POOLS.yaml")],
) -> None:
    """Convert an inventory to pools of a fleet file.

    They have a name, region, hardware, hosts, and their cost.

    Costs are capex_usd_per_host, or a rent in one of rent_usd_per_accelerator_hour, rent_usd_per_host_hour,
    rent_usd_per_accelerator_month, rent_usd_per_host_month.
    Example: plan import inventory inventory.csv --out pools.yaml
    """
    from fleetplan.planner.commands.run_import import run_supply
    from fleetplan.planner.importing.supply_tables import import_inventory

    run_supply(import_inventory(file), file, out, console(stderr=True))


@import_app.command("prices")
def prices(
    file: Annotated[Path, typer.Argument(help="CSV of the price list", metavar="PRICES.csv")],
    out: Annotated[Path, typer.Option(help="fragment of a fleet file to write", metavar="OFFERS.yaml")],
) -> None:
    """Convert a price list to offers of a fleet file.

    It has the columns name, hardware, regions (with semicolons) and price.

    Prices are columns as in `plan import inventory`; max_hosts or max_accelerators, lead_time_quarters and
    price_as_of are taken where they are given.
    Example: plan import prices prices.csv --out offers.yaml
    """
    from fleetplan.planner.commands.run_import import run_supply
    from fleetplan.planner.importing.supply_tables import import_prices

    run_supply(import_prices(file), file, out, console(stderr=True))


@import_app.command("kubernetes")
def kubernetes(
    file: Annotated[Path, typer.Argument(help="output of `kubectl get nodes -o json`", metavar="NODES.json")],
    out: Fragment,
    region: NodeRegion = None,
    hardware: NodeKind = None,
    capex_usd_per_host: CapexOfHost = None,
    rent_usd_per_accelerator_hour: HourlyRent = None,
    as_of: AsOf = None,
) -> None:
    """Convert the nodes of a Kubernetes cluster to pools.

    One for each region and kind of host.

    Example: plan import kubernetes nodes.json --rent-usd-per-accelerator-hour 2.1 --out pools.yaml
    """
    from fleetplan.planner.commands.run_import import pool_options, run_cluster
    from fleetplan.planner.importing.clusters import kubernetes_pools

    options = pool_options(file, as_of, region, hardware, capex_usd_per_host, rent_usd_per_accelerator_hour)
    run_cluster(kubernetes_pools, file, options, out, console(stderr=True))


@import_app.command("slurm")
def slurm(
    file: Annotated[Path, typer.Argument(help="output of `sinfo --json`", metavar="SINFO.json")],
    out: Fragment,
    region: NodeRegion = None,
    hardware: NodeKind = None,
    capex_usd_per_host: CapexOfHost = None,
    rent_usd_per_accelerator_hour: HourlyRent = None,
    as_of: AsOf = None,
) -> None:
    """Convert the nodes of a Slurm cluster to pools.

    One for each kind of host.

    Example: plan import slurm sinfo.json --region east --capex-usd-per-host 297000 --out pools.yaml
    """
    from fleetplan.planner.commands.run_import import pool_options, run_cluster
    from fleetplan.planner.importing.clusters import slurm_pools

    options = pool_options(file, as_of, region, hardware, capex_usd_per_host, rent_usd_per_accelerator_hour)
    run_cluster(slurm_pools, file, options, out, console(stderr=True))


@import_app.command("skypilot")
def skypilot(
    file: Annotated[Path, typer.Argument(help="vms.csv of SkyPilot's catalogue", metavar="VMS.csv")],
    out: Fragment,
    region: WantedRegions = None,
    hardware: WantedParts = None,
    spot_max_share: SpotShare = None,
    as_of: AsOf = None,
) -> None:
    """Convert SkyPilot's catalogue of a cloud to offers.

    One for each machine and price.

    Example: plan import skypilot vms.csv --hardware h100 --region us-east-1=east --out offers.yaml
    """
    from fleetplan.planner.commands.run_import import offer_options, run_price_catalogue
    from fleetplan.planner.importing.skypilot import skypilot_offers

    options = offer_options(file, as_of, region or (), hardware or (), spot_max_share)
    run_price_catalogue(skypilot_offers, file, options, out, console(stderr=True))


@import_app.command("cloud-prices")
def cloud_prices(
    cloud: Annotated[str, typer.Argument(help="whose price list", metavar="aws|azure|gcp")],
    file: Annotated[Path, typer.Argument(help="price list, CSV or JSON", metavar="PRICES")],
    out: Fragment,
    region: WantedRegions = None,
    hardware: WantedParts = None,
    spot_max_share: SpotShare = None,
    terms: Annotated[bool, typer.Option("--terms", help="take reservations for one or more years")] = False,
    as_of: AsOf = None,
) -> None:
    """Convert a public price list of a cloud to offers.

    One for each machine and price.

    AWS: the CSV offer file of AmazonEC2, or what `aws pricing get-products` prints. Azure: pages of the
    Retail Prices API. Google Cloud: pages of the Cloud Billing Catalog API.
    Example: plan import cloud-prices azure prices.json --region eastus=us-east --terms --out offers.yaml
    """
    from fleetplan.planner.commands.run_import import known_cloud, offer_options, run_cloud_prices

    known_cloud(cloud)
    options = offer_options(file, as_of, region or (), hardware or (), spot_max_share, terms)
    run_cloud_prices(cloud, file, options, out, console(stderr=True))


@import_app.command("focus")
def focus(
    file: Annotated[Path, typer.Argument(help="FOCUS 1.x export, CSV or Parquet", metavar="BILLING")],
    out: Fragment,
    region: WantedRegions = None,
    hardware: WantedParts = None,
    spot_max_share: SpotShare = None,
) -> None:
    """Convert a FOCUS billing export to offers and pools.

    Offers have the prices paid; what is committed becomes rented pools.

    Example: plan import focus billing.parquet --region us-east-1=east --out supply.yaml
    """
    from fleetplan.planner.commands.run_import import offer_options, run_price_catalogue
    from fleetplan.planner.importing.focus import focus_supply

    options = offer_options(file, None, region or (), hardware or (), spot_max_share)
    run_price_catalogue(focus_supply, file, options, out, console(stderr=True))


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
    revision: Annotated[str | None, typer.Option(help="of a published id; default: the newest")] = None,
) -> None:
    """Check that a model is supported; print its architecture.

    Otherwise the exit code is 2, with the reason.

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
    days: Annotated[float, typer.Option(help="how far back a server is asked", min=0.01, max=400)] = 7.0,
    step: Annotated[int, typer.Option(help="step of the range [s]", min=1, max=86_400)] = 300,
    token_file: Token = None,
    hardware: Annotated[
        str | None, typer.Option(help="kind of the cards of dcgmi dmon", metavar="NAME")
    ] = None,
) -> None:
    """Convert power readings of the DCGM exporter.

    They become the idle and full power of hardware.

    A folder holds answers of /api/v1/query_range to DCGM_FI_DEV_POWER_USAGE in power.json and to
    DCGM_FI_DEV_GPU_UTIL in utilisation.json. A file holds what dcgmi dmon -e 155,203 prints (--hardware
    names its cards), or pages of the exporter's /metrics one after another.
    Example: plan import dcgm http://localhost:9090 --out power.yaml
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

    That is classes, lengths, burstiness and demand.

    Known are Azure's LLM inference traces, BurstGPT, Mooncake, and CSV files with arrival_s, input_tokens,
    output_tokens and, where known, session and prefix_tokens; each as it is, as .gz or .zst, or as Parquet.
    Example: plan import trace AzureLLMInferenceTrace_conv.csv --service chat --classes 2 --out traffic
    """
    from fleetplan.planner.importing.traces import run_trace

    run_trace(file, service, classes, out, force, console(stderr=True))


@import_app.command("prometheus")
def prometheus(
    source: Annotated[
        str, typer.Argument(help="URL of a server, or a folder of saved answers", metavar="URL|FOLDER")
    ],
    system: Annotated[
        str, typer.Option(help="whose metrics", metavar="vllm|sglang|trtllm|dynamo|envoy-ai-gateway")
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="folder for the fragment and its lengths", metavar="DIR", callback=output_folder),
    ] = None,
    days: Annotated[float, typer.Option(help="how far back a server is asked", min=0.01, max=400)] = 7.0,
    step: Annotated[int, typer.Option(help="step of the range [s]", min=1, max=86_400)] = 300,
    percentile: Annotated[float, typer.Option(help="of rates, which demand is", min=0, max=100)] = 99.0,
    slices: Annotated[int, typer.Option(help="equal parts of the day, in UTC", min=1, max=24)] = 1,
    region_label: Annotated[str | None, typer.Option(help="label that names the region")] = None,
    region: Annotated[str | None, typer.Option(help="region of series without such a label")] = None,
    token_file: Token = None,
    save: Annotated[Path | None, typer.Option(help="folder to keep a server's answers in")] = None,
    queries: Annotated[bool, typer.Option("--queries", help="print the range queries and end")] = False,
    force: Annotated[bool, typer.Option("--force", help="overwrite existing files")] = False,
) -> None:
    """Convert what Prometheus recorded to demand.

    Services get their rates, lengths and the shape of their day.

    A folder holds an answer of /api/v1/query_range in NAME.json for each query that --queries prints. A
    server may ask for a bearer token (--token-file) or a name and password (https://name:password@host).
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
