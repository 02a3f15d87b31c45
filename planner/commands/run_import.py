"""Run `plan import`: convert a file of another tool, and state why rows are left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import pandas as pd
from rich.console import Console

from fleetplan.fleet.document.records import Table, open_table
from fleetplan.fleet.errors import InputError, Issue, names_hint
from fleetplan.fleet.figures import counted
from fleetplan.fleet.input_files import read_text
from fleetplan.fleet.schema.values import is_date
from fleetplan.perfmodel.architecture import MoeFfn, UnsupportedArchitecture, load_architecture
from fleetplan.planner.cells import csv_text
from fleetplan.planner.commands.shared import hardware_option
from fleetplan.planner.commands.terminal import say_written
from fleetplan.planner.export.new_file import write_new
from fleetplan.planner.importing.benchmark_formats import READERS
from fleetplan.planner.importing.benchmark_rows import MeasuredDeployment
from fleetplan.planner.importing.benchmarks import import_benchmarks
from fleetplan.planner.importing.cloud_prices import (
    AWS_FIRST_COLUMN,
    aws_offers,
    aws_table_offers,
    azure_offers,
    gcp_offers,
)
from fleetplan.planner.importing.clusters import PoolOptions
from fleetplan.planner.importing.fragments import ImportedSupply, file_date
from fleetplan.planner.importing.hub import published_config
from fleetplan.planner.importing.offers import OfferOptions
from fleetplan.planner.importing.progress import reading
from fleetplan.planner.importing.records import RejectedRows, read_json, read_summary


def run_benchmarks(
    form: str,
    files: Sequence[Path],
    given: MeasuredDeployment,
    out: Path,
    errors: Console,
    input_tokens: float | None,
    served_as: str | None,
) -> None:
    """Write the measurements in result files as one table for `plan calibrate`.

    Raises
    ------
    InputError
        The format does not exist, a file is unreadable, or no row is usable.
    """
    if form not in READERS:
        raise InputError(
            [Issue("command line", 0, 0, "FORMAT", f"there is no {form!r}", names_hint(form, tuple(READERS)))]
        )
    read = read_summary if form == "mlperf" else read_json
    rows: list[dict[str, object]] = []
    for path in files:
        found = import_benchmarks(form, read(path), given, input_tokens, served_as)
        say_taken(str(path), "row", len(found.rows), found.rejected, errors)
        rows += [{**row, "case_id": f"{path.name} {row['case_id']}"} for row in found.rows]
    if not rows:
        raise InputError(
            [Issue(str(files[0]), 1, 1, "", "no row can be imported; the reasons are listed above")]
        )
    _write(out, csv_text(pd.DataFrame(rows)), errors)


def run_supply(found: ImportedSupply, path: Path, out: Path, errors: Console) -> None:
    """Write pools or offers as a fragment of a fleet file.

    Raises
    ------
    InputError
        No row is usable.
    """
    for note in found.notes:
        errors.print(f"{path}: {note}", style="yellow", markup=False)
    say_taken(str(path), "row", found.taken, found.rejected, errors)
    if not found.taken:
        raise InputError([Issue(str(path), 1, 1, "", "no row can be imported; the reasons are listed above")])
    _write(out, found.text, errors)


def run_price_catalogue(
    read: Callable[[Table, str, OfferOptions], ImportedSupply],
    path: Path,
    options: OfferOptions,
    out: Path,
    errors: Console,
) -> None:
    """Write the offers and pools of a large table, with progress.

    Raises
    ------
    InputError
        The file is unreadable, or no row is usable.
    """
    with reading(path, errors) as watch, open_table(path, watch) as table:
        found = read(table, str(path), options)
    run_supply(found, path, out, errors)


CLOUDS: Final[Mapping[str, Callable[[object, str, OfferOptions], ImportedSupply]]] = {
    "aws": aws_offers,
    "azure": azure_offers,
    "gcp": gcp_offers,
}
"""Reader of the JSON price list of each cloud."""


def known_cloud(name: str) -> str:
    """Return the name of a cloud with a supported price list.

    Raises
    ------
    InputError
        The cloud is not supported.
    """
    if name not in CLOUDS:
        hint = names_hint(name, tuple(CLOUDS))
        raise InputError([Issue("command line", 0, 0, "CLOUD", f"there is no {name!r}", hint)])
    return name


def run_cloud_prices(cloud: str, path: Path, options: OfferOptions, out: Path, errors: Console) -> None:
    """Write the offers of a cloud's price list; the CSV offer file of AWS is streamed row by row.

    Raises
    ------
    InputError
        The file is unreadable, or no row is usable.
    """
    if cloud == "aws" and not path.name.lower().removesuffix(".gz").endswith((".json", ".jsonl")):
        with reading(path, errors) as watch, open_table(path, watch, first_column=AWS_FIRST_COLUMN) as table:
            found = aws_table_offers(table, str(path), options)
    else:
        found = CLOUDS[cloud](read_json(path), str(path), options)
    run_supply(found, path, out, errors)


def run_cluster(
    read: Callable[[object, str, PoolOptions], ImportedSupply],
    path: Path,
    options: PoolOptions,
    out: Path,
    errors: Console,
) -> None:
    """Write the pools of a cluster from its description in JSON.

    Raises
    ------
    InputError
        The file is unreadable, or no row is usable.
    """
    run_supply(read(read_json(path), str(path), options), path, out, errors)


def pool_options(
    path: Path,
    as_of: str | None,
    region: str | None,
    hardware: str | None,
    capex_usd_per_host: float | None,
    rent_usd_per_accelerator_hour: float | None,
) -> PoolOptions:
    """Return the options for nodes from the command line.

    Raises
    ------
    InputError
        The hardware is unknown, or both a purchase price and a rent are given.
    """
    if capex_usd_per_host is not None and rent_usd_per_accelerator_hour is not None:
        hint = "hosts are bought or rented, not both"
        raise InputError([Issue("--capex-usd-per-host", 0, 0, "", "is given with a rent", hint)])
    kind = None if hardware is None else hardware_option(hardware)
    return PoolOptions(_day(as_of, path), region, kind, capex_usd_per_host, rent_usd_per_accelerator_hour)


def offer_options(
    path: Path,
    as_of: str | None,
    regions: Sequence[str],
    hardware: Sequence[str],
    spot_max_share: float | None,
    terms: bool = False,
) -> OfferOptions:
    """Return the options for a price catalogue from the command line.

    Raises
    ------
    InputError
        The hardware is unknown.
    """
    named = named_regions(regions)
    kinds = frozenset(hardware_option(name) for name in hardware)
    stated = as_of is not None
    return OfferOptions(_day(as_of, path), named, kinds, spot_max_share, terms, is_stated=stated)


def named_regions(written: Sequence[str]) -> dict[str, str]:
    """Return the fleet's names of regions, from THEIRS=OURS or THEIRS."""
    pairs = [text.partition("=") for text in written]
    return {theirs: ours or theirs for theirs, _, ours in pairs}


def _day(as_of: str | None, path: Path) -> str:
    """Return the date given by the option, or that of the file.

    Raises
    ------
    InputError
        The text is not a day, month or year.
    """
    if as_of is not None and not is_date(as_of):
        hint = "a day, a month or a year: 2026-11-24, 2026-11, 2026"
        raise InputError([Issue("--as-of", 0, 0, "", f"{as_of!r} is not a date", hint)])
    return as_of or file_date(path)


def fetch_model(model: str, revision: str | None, out: Path, console: Console, errors: Console) -> None:
    """Write the config of a published model, if it is supported, and print its architecture.

    Raises
    ------
    InputError
        The config is unavailable or unsupported, or the file cannot be written.
    """
    path = published_config(model, revision)
    describe_model(str(path), console, named=str(out))
    _write(out, read_text(path), errors)


def describe_model(reference: str, console: Console, named: str | None = None) -> None:
    """Print the architecture of a model, as the performance model reads its config.

    Parameters
    ----------
    reference : str
        HF id or alias in the catalogue, or the path of a config.
    console : Console
        Output console.
    named : str or None
        Model reference to print for use in a fleet file; None for the given reference.

    Raises
    ------
    InputError
        The model does not exist, or is not supported.
    """
    try:
        architecture = load_architecture(reference, Path())
    except UnsupportedArchitecture as error:
        raise InputError([Issue(reference, 0, 0, "", str(error))]) from error
    experts = any(isinstance(group.ffn, MoeFfn) for group in architecture.groups)
    layers = sum(group.count for group in architecture.groups)
    console.print(
        f"{named or architecture.name}: {counted(layers, 'layer')}, "
        f"{'mixture of experts' if experts else 'dense'}; "
        f"in a fleet file: model: {named or reference}",
        markup=False,
        highlight=False,
    )


def say_taken(place: str, what: str, taken: int, rejected: Sequence[RejectedRows], errors: Console) -> None:
    """Print how many rows of a source were accepted, and why others were not.

    Parameters
    ----------
    place : str
        Name of the source.
    what : str
        Noun for the rows, in the singular.
    taken : int
        Number of accepted rows.
    rejected : Sequence[RejectedRows]
        Rejected rows.
    errors : Console
        Output console.
    """
    for each in rejected:
        errors.print(f"{place}: {each.place}: skipped: {each.reason}", style="yellow", markup=False)
    left = sum(each.rows for each in rejected)
    errors.print(f"{place}: {counted(taken, what)} taken, {left:,} not", markup=False, highlight=False)


def _write(out: Path, text: str, errors: Console) -> None:
    write_new(out, text, over=True)
    say_written(errors, out)
