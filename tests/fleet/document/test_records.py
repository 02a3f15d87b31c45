"""Tables read record by record: the same records of every form, in memory that does not grow with them."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fleetplan.fleet.document import records as records_module
from fleetplan.fleet.document.records import open_table
from fleetplan.fleet.errors import InputError

TEXT = 'a,b\n1,"x, y"\n2,z\n'


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as out:
        out.write(data)
    return bytes(sink.getvalue())


def records(path: Path) -> list[tuple[int, dict[str, object]]]:
    with open_table(path) as table:
        return [(number, dict(record)) for number, record in table.records]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd, lambda data: zstd(data[:9]) + zstd(data[9:])])
def test_csv_is_read_however_it_is_packed_and_named(tmp_path: Path, pack: object) -> None:
    path = tmp_path / "table.data"
    path.write_bytes(pack(TEXT.encode()))  # type: ignore[operator]
    assert records(path) == [(2, {"a": "1", "b": "x, y"}), (3, {"a": "2", "b": "z"})]


def test_json_lines_and_parquet(tmp_path: Path) -> None:
    rows = [{"a": 1, "b": [1, 2]}, {"a": 2, "b": []}]
    lines, table = tmp_path / "rows.jsonl.gz", tmp_path / "rows.parquet"
    lines.write_bytes(gzip.compress("\n\n".join(map(json.dumps, rows)).encode()))
    pq.write_table(pa.Table.from_pylist(rows), table)
    assert records(lines) == [(1, rows[0]), (3, rows[1])]
    assert records(table) == [(1, rows[0]), (2, rows[1])]


# Without the time in their headers: every process must name the tests alike.
@pytest.mark.parametrize(
    ("data", "said"),
    [
        (gzip.compress(TEXT.encode(), mtime=0)[:-12], "cut short or damaged"),
        (zstd(TEXT.encode())[:10], "cannot be read|cut short"),
        (b"PAR1" + bytes(100), "is not a Parquet file"),
        (b"\x1f\x8b" + bytes(100), "cut short or damaged"),
        (gzip.compress(b'{"a": 1}\n{"a": }', mtime=0), ":2:7: is not JSON"),
        (gzip.compress(b"a,b\n\xff\xfe,1\n", mtime=0), "UTF-8"),
    ],
)
def test_what_is_damaged_is_one_error(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "table"
    path.write_bytes(data)
    with pytest.raises(InputError, match=said):
        records(path)


def test_a_line_without_an_end_is_refused_before_it_is_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records_module, "MAX_LINE_LETTERS", 1000)
    path = tmp_path / "table"
    path.write_bytes(gzip.compress(b"a\n" + b"x" * 10**7))
    with pytest.raises(InputError, match=r"table:2:1: is longer than 1,000 letters"):
        records(path)


def test_progress_is_told_as_shares_of_the_file(tmp_path: Path) -> None:
    path, shares = tmp_path / "table.gz", []
    path.write_bytes(gzip.compress(("a,b\n" + "1,2\n" * 200_000).encode()))
    with open_table(path, shares.append) as table:
        assert sum(1 for _ in table.records) == 200_000
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(shares) >= 3


def test_row_groups_of_parquet_are_read_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader of all of them keeps some of each: 120 MiB after ten million rows of three columns."""
    path, asked = tmp_path / "rows.parquet", []
    pq.write_table(pa.table({"a": list(range(10))}), path, row_group_size=4)
    read = pq.ParquetFile.iter_batches

    def noted(*arguments: object, **options: object) -> object:
        asked.append(options["row_groups"])
        return read(*arguments, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", noted)
    assert [record["a"] for _, record in records(path)] == list(range(10))
    assert asked == [[0], [1], [2]]


@pytest.mark.parametrize("form", ["gz", "parquet"])
def test_memory_does_not_grow_with_the_rows(tmp_path: Path, form: str) -> None:
    peaks = []
    for rows in (10_000, 30_000):
        path = tmp_path / f"{rows}.{form}"
        if form == "parquet":
            column = np.arange(rows)
            pq.write_table(pa.table({"a": column, "b": column}), path, row_group_size=10_000)
        else:
            path.write_bytes(gzip.compress(("a,b\n" + "1234567,7654321\n" * rows).encode(), 1))
        tracemalloc.start()
        with open_table(path) as table:
            assert sum(1 for _ in table.records) == rows
        peaks.append(tracemalloc.get_traced_memory()[1] / 2**20)
        tracemalloc.stop()
    # The rows as Python objects would take 300 bytes each: 6 MiB more.
    assert peaks[1] - peaks[0] < 2
