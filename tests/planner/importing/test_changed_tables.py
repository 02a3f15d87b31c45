"""Saved, compressed, edited or truncated tables give the same rows or an error; no row is lost silently."""

from __future__ import annotations

import csv
import gzip
import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.planner.importing.supply_offers import SKYPILOT
from tests.planner.importing.supply_offers import read as read_supply

from fleetplan.fleet.errors import InputError
from fleetplan.fleet.input_files import NotTextError, read_text
from fleetplan.perfmodel.replay import read_trace
from fleetplan.planner.importing.power_files import readings_of
from fleetplan.planner.importing.records import read_json
from fleetplan.planner.importing.supply_tables import import_inventory, import_prices

INVENTORY = """\
name,region,hardware,hosts,capex_usd_per_host,in_service,rent_usd_per_host_month,price_as_of
a,east,H100-SXM,4,297000,2025Q1,,2026-08
b,west,H200-SXM,2,,,11680,2026-09
c,,B200-SXM,3,446000,,,2026-09
"""

PRICES = """\
name,hardware,regions,rent_usd_per_accelerator_hour,max_hosts,term_quarters,energy_included
a,H100-SXM,east;west,1.99,64,,true
b,H200-SXM,east,2.5,,4,true
c,H100-SXM,west,1.5,10,,false
"""

BILL = (
    "ChargeCategory,EffectiveCost,ChargePeriodStart,ChargePeriodEnd,RegionId,ConsumedQuantity,ConsumedUnit,"
    "x_InstanceType,PricingCategory\n"
) + "".join(
    f"Usage,98.5,2026-10-0{day}T00:00:00Z,2026-10-0{day + 1}T00:00:00Z,r,24,Hours,p5.48xlarge,{category}\n"
    for day in range(1, 5)
    for category in ("Standard", "Committed")
)

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
    f"2023-11-16 18:00:0{second}.1234567,{100 + second},{20 + second}\n" for second in range(8)
)

BURSTGPT = "Timestamp,Session ID,Model,Request tokens,Response tokens,Total tokens,Log Type\n" + "".join(
    f"{second},{second % 3},GPT-4,{100 + second},{20 + second},{120 + 2 * second},API log\n"
    for second in range(8)
)

Change = Callable[[str], bytes]

Read = Callable[[Path], tuple[object, object]]
"""What a file holds, and what is said of rows that are not taken."""


def _supply(path: Path) -> tuple[object, object]:
    read = {"inventory.csv": import_inventory, "prices.csv": import_prices}.get(path.name, read_supply)
    found = read(path)
    return [line for line in found.text.splitlines() if not line.startswith("#")], found.rejected


def _trace(path: Path) -> tuple[object, object]:
    found = read_trace(path)
    each = found.requests
    columns = (each.arrival_ms, each.input_tokens, each.output_tokens, each.session)
    return [column.tolist() for column in columns], found.rejected


TABLES: dict[str, tuple[str, Read]] = {
    "inventory.csv": (INVENTORY, _supply),
    "prices.csv": (PRICES, _supply),
    "vms.csv": (SKYPILOT, _supply),
    "bill.csv": (BILL, _supply),
    "azure.csv": (AZURE, _trace),
    "burstgpt.csv": (BURSTGPT, _trace),
}


def _by_row(change: Callable[[int, list[str]], list[str]], quoting: int = csv.QUOTE_MINIMAL) -> Change:
    def changed(text: str) -> bytes:
        out = io.StringIO()
        writer = csv.writer(out, quoting=quoting, lineterminator="\n")
        writer.writerows(change(n, row) for n, row in enumerate(csv.reader(io.StringIO(text))))
        return out.getvalue().encode()

    return changed


def _by_line(change: Callable[[int, str], str]) -> Change:
    return lambda text: "".join(change(n, line) for n, line in enumerate(text.splitlines(True))).encode()


SAME: dict[str, Change] = {
    "byte-order mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "line ends of Windows": lambda text: text.replace("\n", "\r\n").encode(),
    "line ends of old Macs": lambda text: text.replace("\n", "\r").encode(),
    "gzip": lambda text: gzip.compress(text.encode()),
    "no last line end": lambda text: text.rstrip("\n").encode(),
    "empty lines": _by_line(lambda _, line: f"\n{line}  \n"),
    "lines of commas": _by_line(lambda n, line: line + ",,\n" * bool(n)),
    "a divider of Excel": lambda text: f"sep=,\n{text}".encode(),
    "commas at the end": _by_line(lambda _, line: line.replace("\n", ",\n")),
    "blanks after commas": _by_row(lambda _, row: [row[0], *(f" {cell}" for cell in row[1:])]),
    "other order": _by_row(lambda _, row: row[::-1]),
    "more columns": _by_row(lambda n, row: [f"x{n}", *row, "a comment, with a comma" if n else "Remarks"]),
    "quotes everywhere": _by_row(lambda _, row: row, csv.QUOTE_ALL),
    "short rows": _by_row(lambda _, row: row if row[-1] else row[:-1]),
}

REFUSED: dict[str, Change] = {
    "UTF-16": lambda text: text.encode("utf-16"),
    "UTF-16 without a mark": lambda text: text.encode("utf-16-le"),
    "gzip cut short": lambda text: gzip.compress(text.encode())[:-9],
    "semicolons": lambda text: text.replace(",", ";").encode(),
    "a column twice": _by_row(lambda _, row: [*row, row[2]]),
}

TOLD: dict[str, Change] = {
    "a quote without an end": _by_line(
        lambda n, line: line.replace("\n", {0: ",remark\n", 2: ',"stray\n'}.get(n, ",x\n"))
    ),
    "a quote that the next one ends": _by_line(
        lambda n, line: line.replace("\n", {0: ",remark\n", 2: ',"stray\n', 3: ',"fine"\n'}.get(n, ",x\n"))
    ),
    "a comma between thousands": _by_line(lambda n, line: line.replace(",", ",1,", 1) if n == 3 else line),
    "cut in its last line": lambda text: text.rstrip("\n").rpartition(",")[0].encode(),
    "NUL in a line": _by_line(lambda n, line: f"\0{line}" if n == 3 else line),
}


def _read(name: str, change: Change, folder: Path) -> tuple[object, object]:
    text, read = TABLES[name]
    (folder / name).write_bytes(change(text))
    return read(folder / name)


@pytest.mark.parametrize("name", list(TABLES))
def test_a_table_that_was_saved_otherwise_is_the_same_rows(name: str, tmp_path: Path) -> None:
    rows, told = _read(name, str.encode, tmp_path)
    for label, change in SAME.items():
        found, said = _read(name, change, tmp_path)
        assert found == rows, label
        assert len(said) == len(told), label  # type: ignore[arg-type]


@pytest.mark.parametrize("name", list(TABLES))
def test_a_table_that_is_none_is_refused(name: str, tmp_path: Path) -> None:
    for label, change in REFUSED.items():
        with pytest.raises(InputError):
            print(label, _read(name, change, tmp_path))


@pytest.mark.parametrize("change", list(TOLD))
@pytest.mark.parametrize("name", list(TABLES))
def test_a_row_that_is_broken_is_told(name: str, change: str, tmp_path: Path) -> None:
    rows, told = _read(name, str.encode, tmp_path)
    try:
        found, said = _read(name, TOLD[change], tmp_path)
    except InputError:
        return
    assert len(said) > len(told), (found, rows)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "old", "new", "reason"),
    [
        ("azure.csv", ",103,", ",null,", "ContextTokens: 'null' is not a number"),
        ("azure.csv", ",23\n", ",NaN\n", "GeneratedTokens: 'NaN' is not a whole number of tokens"),
        (
            "azure.csv",
            "2023-11-16 18:00:03",
            "16.11.2023 18:00:03",
            "is not a time such as 2023-11-16T18:00:00Z",
        ),
        ("burstgpt.csv", "3,0,GPT-4", "3 s,0,GPT-4", "Timestamp: '3 s' is not a number"),
        ("bill.csv", ",24,Hours", ",,Hours", "ConsumedQuantity is missing"),
    ],
)
def test_the_reason_names_the_column_and_what_it_holds(
    name: str, old: str, new: str, reason: str, tmp_path: Path
) -> None:
    text, _ = TABLES[name]
    assert old in text
    _, told = _read(name, lambda text: text.replace(old, new, 1).encode(), tmp_path)
    assert [reason in str(each) for each in told] == [True]  # type: ignore[attr-defined]


def test_times_as_bigquery_writes_them_are_times(tmp_path: Path) -> None:
    rows, _ = _read("azure.csv", str.encode, tmp_path)
    assert (
        _read("azure.csv", lambda text: text.replace("1234567,", "1234567 UTC,").encode(), tmp_path)[0]
        == rows
    )


def test_a_line_of_dcgmi_that_is_no_reading_is_told() -> None:
    text = "#Entity   POWER   GPUTL\nID        W\nGPU 0     70.5    0\n\0GPU 0     70.5    0\n"
    with pytest.raises(InputError, match=r"dmon:4:1: is not a reading: '.x00' precedes the card"):
        readings_of(text, "dmon", "H100-SXM")


def test_of_lines_of_json_the_broken_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    for line_end in ("\n", "\r\n", "\r"):
        text = line_end.join(['{"a": 1}', "", '{"a": "\u2028"}', '{"a": 3}'])
        path.write_text(text, encoding="utf-8", newline="")
        assert read_json(path) == [{"a": 1}, {"a": "\u2028"}, {"a": 3}]
        path.write_text(text[:-3], encoding="utf-8", newline="")
        with pytest.raises(InputError, match=r":4:6: is not JSON: Expecting value"):
            read_json(path)
    # Of one document over several lines, the place in it.
    path.write_text('{\n  "a": [1,\n  2,\n', encoding="utf-8")
    with pytest.raises(InputError, match=r":4:1: is not JSON"):
        read_json(path)


@pytest.mark.parametrize(
    "sample", ["{} 70.5 1700000000.5", "{} 70.5 1700000000500", "{}  7.05e+01", "{} NaN"]
)
def test_a_sample_of_the_exporter_is_read_or_told(sample: str) -> None:
    labels = '{gpu="0",modelName="NVIDIA H100 80GB HBM3"}'
    line = "DCGM_FI_DEV_POWER_USAGE" + sample.replace("{}", labels)
    found = readings_of(f"{line}\n  {line}\nDCGM_FI_DEV_POWER_USAGE_INSTANT{labels} 9\n", "metrics", None)
    values = [each for series in found["power"] for each in series.value]
    # A value that is none is kept as such: it is counted where the readings are used.
    assert np.array_equal(values, [np.nan if "NaN" in sample else 70.5] * 2, equal_nan=True)
    for broken in ("", " ", " 70.5x", " 70.5\0"):
        text = f"{line}\nDCGM_FI_DEV_POWER_USAGE{labels}{broken}\n{line}\n"
        with pytest.raises(InputError, match=r"metrics:2:1: DCGM_FI_DEV_POWER_USAGE: is not a sample"):
            readings_of(text, "metrics", None)


def test_a_workbook_is_told_from_text(tmp_path: Path) -> None:
    path = tmp_path / "inventory.csv"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("é" * 9, b"\xff" * 99)
    with pytest.raises(InputError, match="it is a workbook or ZIP file; save its table as CSV"):
        import_inventory(path)
    path.write_bytes(gzip.compress(INVENTORY.encode()))
    with pytest.raises(NotTextError, match=r"^it is packed by gzip; unpack it first$"):
        read_text(path)
    path.write_bytes(pa.compress(INVENTORY.encode(), codec="zstd", asbytes=True))
    with pytest.raises(InputError, match="it is packed by zstd; unpack it first"):
        import_inventory(path)


def test_a_comma_in_a_number_is_told_where_the_row_ends_in_empty_cells(tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    head = "name,hardware,regions,rent_usd_per_accelerator_hour,max_hosts,term_quarters,per\n"
    path.write_text(f"{head}a,H100-SXM,east,2.5,,,\nb,H100-SXM,east,1,200,,,\n", encoding="utf-8")
    found = import_prices(path)
    assert (found.taken, [each.reason for each in found.rejected]) == (1, ["has 8 cells, the header 7"])
    path = tmp_path / "vms.csv"
    head = "InstanceType,AcceleratorName,AcceleratorCount,Price,Region,SpotPrice,AvailabilityZone\n"
    path.write_text(f"{head}p5.48xlarge,H100,8,1,200,east,,\n", encoding="utf-8")
    with pytest.raises(InputError, match=":2:1: has 8 cells, the header 7"):
        read_supply(path)
