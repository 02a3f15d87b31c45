"""`plan import` for supply: convert inventories, price lists, clusters and bills to parts of a fleet file."""

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
    WantedParts,
    WantedRegions,
)
from fleetplan.planner.commands.terminal import console


def inventory(
    file: Annotated[Path, typer.Argument(help="CSV of the installed hardware", metavar="INVENTORY.csv")],
    out: Annotated[Path, typer.Option(help="fragment of a fleet file to write", metavar="POOLS.yaml")],
) -> None:
    """Convert an inventory to pools of a fleet file.

    Rows have a name, region, hardware, hosts, and their cost.

    Costs are capex_usd_per_host, or a rent in one of rent_usd_per_accelerator_hour, rent_usd_per_host_hour,
    rent_usd_per_accelerator_month, rent_usd_per_host_month. Example: plan import inventory inventory.csv
    --out pools.yaml
    """
    from fleetplan.planner.commands.run_import import run_supply
    from fleetplan.planner.importing.supply_tables import import_inventory

    run_supply(import_inventory(file), file, out, console(stderr=True))


def prices(
    file: Annotated[Path, typer.Argument(help="CSV of the price list", metavar="PRICES.csv")],
    out: Annotated[Path, typer.Option(help="fragment of a fleet file to write", metavar="OFFERS.yaml")],
) -> None:
    """Convert a price list to offers of a fleet file.

    The columns are name, hardware, regions (separated by semicolons) and price.

    Price columns are those of `plan import inventory`; max_hosts or max_accelerators, lead_time_quarters and
    price_as_of are optional. Example: plan import prices prices.csv --out offers.yaml
    """
    from fleetplan.planner.commands.run_import import run_supply
    from fleetplan.planner.importing.supply_tables import import_prices

    run_supply(import_prices(file), file, out, console(stderr=True))


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

    Writes one pool per region and kind of host.

    Example: plan import kubernetes nodes.json --rent-usd-per-accelerator-hour 2.1 --out pools.yaml
    """
    from fleetplan.planner.commands.run_import import pool_options, run_cluster
    from fleetplan.planner.importing.clusters import kubernetes_pools

    options = pool_options(file, as_of, region, hardware, capex_usd_per_host, rent_usd_per_accelerator_hour)
    run_cluster(kubernetes_pools, file, options, out, console(stderr=True))


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

    Writes one pool per kind of host.

    Example: plan import slurm sinfo.json --region east --capex-usd-per-host 297000 --out pools.yaml
    """
    from fleetplan.planner.commands.run_import import pool_options, run_cluster
    from fleetplan.planner.importing.slurm import slurm_pools

    options = pool_options(file, as_of, region, hardware, capex_usd_per_host, rent_usd_per_accelerator_hour)
    run_cluster(slurm_pools, file, options, out, console(stderr=True))


def skypilot(
    file: Annotated[Path, typer.Argument(help="vms.csv of SkyPilot's catalogue", metavar="VMS.csv")],
    out: Fragment,
    region: WantedRegions = None,
    hardware: WantedParts = None,
    spot_max_share: SpotShare = None,
    as_of: AsOf = None,
) -> None:
    """Convert SkyPilot's catalogue of a cloud to offers.

    Writes one offer per machine and price.

    Example: plan import skypilot vms.csv --hardware h100 --region us-east-1=east --out offers.yaml
    """
    from fleetplan.planner.commands.run_import import offer_options, run_price_catalogue
    from fleetplan.planner.importing.skypilot import skypilot_offers

    options = offer_options(file, as_of, region or (), hardware or (), spot_max_share)
    run_price_catalogue(skypilot_offers, file, options, out, console(stderr=True))


def cloud_prices(
    cloud: Annotated[str, typer.Argument(help="cloud of the price list", metavar="aws|azure|gcp")],
    file: Annotated[Path, typer.Argument(help="price list, CSV or JSON", metavar="PRICES")],
    out: Fragment,
    region: WantedRegions = None,
    hardware: WantedParts = None,
    spot_max_share: SpotShare = None,
    terms: Annotated[
        bool, typer.Option("--terms", help="include reservations for one or more years")
    ] = False,
    as_of: AsOf = None,
) -> None:
    """Convert a public price list of a cloud to offers.

    Writes one offer per machine and price.

    AWS: the CSV offer file of AmazonEC2, or the output of `aws pricing get-products`. Azure: pages of the
    Retail Prices API. Google Cloud: pages of the Cloud Billing Catalog API. Example: plan import cloud-prices
    azure prices.json --region eastus=us-east --terms --out offers.yaml
    """
    from fleetplan.planner.commands.run_import import known_cloud, offer_options, run_cloud_prices

    known_cloud(cloud)
    options = offer_options(file, as_of, region or (), hardware or (), spot_max_share, terms)
    run_cloud_prices(cloud, file, options, out, console(stderr=True))


def focus(
    file: Annotated[Path, typer.Argument(help="FOCUS 1.x export, CSV or Parquet", metavar="BILLING")],
    out: Fragment,
    region: WantedRegions = None,
    hardware: WantedParts = None,
    spot_max_share: SpotShare = None,
) -> None:
    """Convert a FOCUS billing export to offers and pools.

    Offers have the prices paid; commitments become rented pools.

    Example: plan import focus billing.parquet --region us-east-1=east --out supply.yaml
    """
    from fleetplan.planner.commands.run_import import offer_options, run_price_catalogue
    from fleetplan.planner.importing.focus import focus_supply

    options = offer_options(file, None, region or (), hardware or (), spot_max_share)
    run_price_catalogue(focus_supply, file, options, out, console(stderr=True))
