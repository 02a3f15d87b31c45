from __future__ import annotations

import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.parts import first_of
from tests.warm import WarmProcess

from fleetplan.perfmodel.operators import OperatorKind
from fleetplan.perfmodel.optables import cache
from fleetplan.perfmodel.optables.cache import ImportedTables, file_sha256
from fleetplan.perfmodel.optables.measured.families import FAMILIES
from fleetplan.perfmodel.optables.measured.tables import FRAMEWORKS, TableFile, table_files

from .conftest import TableWriter

TIMES = {(m, 64, 32): float(m) for m in (1, 2, 4, 8)}


@pytest.fixture
def file(write_table: TableWriter, gemm_frame: Callable[..., pd.DataFrame]) -> TableFile:
    path = write_table("gemm", "vllm", "1.0", "gemm", gemm_frame(TIMES))
    return TableFile(path, "gemm", "vllm", "1.0", "test")


def latencies(file: TableFile, folder: Path) -> list[float]:
    (rows,) = ImportedTables(file, file_sha256(file.path), folder).values()
    return sorted(rows.latency_ms.tolist())


def fail(file: TableFile) -> list[object]:
    raise AssertionError(f"{file.path} was imported again")


def test_a_second_reading_does_not_open_the_source(
    file: TableFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = latencies(file, tmp_path / "cache")
    monkeypatch.setattr(cache, "read_table", fail)
    assert latencies(file, tmp_path / "cache") == first == sorted(TIMES.values())


def test_tables_of_steps_with_prompts_and_without_are_kept_both(
    write_table: TableWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = {"kernel_source": "NVLinkOneSided", "hidden_size": 7168, "topk": 8, "num_experts": 256}
    columns |= {"moe_ep_size": 8, "distribution": "balanced"}
    sent = [("alltoall_dispatch", "fp8", 0.02), ("alltoall_combine", "bfloat16", 0.03)]
    frame = pd.DataFrame(
        [
            {**columns, "op_name": name, "moe_dtype": dtype, "num_tokens": tokens, "latency": ms * tokens}
            for name, dtype, ms in sent
            for tokens in (16, 64)
        ]
    )
    path = write_table("comm", "trtllm", "1.0", "trtllm_alltoall", frame)
    file = TableFile(path, "trtllm_alltoall", "trtllm", "1.0", "test")

    def read() -> list[tuple[str, str, list[int], list[float]]]:
        tables = ImportedTables(file, file_sha256(file.path), tmp_path / "cache").values()
        return [
            (rows.kind, rows.dtype, rows.dims["low_latency"].tolist(), rows.latency_ms.tolist())
            for rows in tables
        ]

    first = read()
    assert [sorted(low_latency) for _, _, low_latency, _ in first] == [[0, 0, 1, 1]] * 2
    monkeypatch.setattr(cache, "read_table", fail)
    assert read() == first


@pytest.mark.parametrize("damage", [b"", b"not an archive", None])
def test_a_damaged_cache_is_rebuilt(
    file: TableFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes | None
) -> None:
    folder = tmp_path / "cache"
    first = latencies(file, folder)
    (kept,) = folder.iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(whole[: len(whole) // 2] if damage is None else damage)
    assert latencies(file, folder) == first
    monkeypatch.setattr(cache, "read_table", fail)
    assert latencies(file, folder) == first


def test_an_import_under_the_name_of_another_one_is_not_believed(
    file: TableFile, tmp_path: Path, write_table: TableWriter, gemm_frame: Callable[..., pd.DataFrame]
) -> None:
    slower = {key: 10 * latency for key, latency in TIMES.items()}
    path = write_table("gemm", "vllm", "2.0", "gemm", gemm_frame(slower))
    other = TableFile(path, "gemm", "vllm", "2.0", "test")
    folder = tmp_path / "cache"
    fresh = (latencies(file, folder), latencies(other, folder))
    first, second = sorted(folder.iterdir())
    one, two = first.read_bytes(), second.read_bytes()
    first.write_bytes(two)
    second.write_bytes(one)
    assert (latencies(file, folder), latencies(other, folder)) == fresh


def test_a_flipped_byte_is_noticed(file: TableFile, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    first = latencies(file, folder)
    (kept,) = folder.iterdir()
    whole = bytearray(kept.read_bytes())
    position = whole.find(np.float64(8.0).tobytes())
    whole[position + 6] ^= 0xFF
    kept.write_bytes(bytes(whole))
    assert latencies(file, folder) == first


def test_other_contents_and_other_importers_have_other_caches(
    file: TableFile,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    gemm_frame: Callable[..., pd.DataFrame],
) -> None:
    folder = tmp_path / "cache"
    latencies(file, folder)
    gemm_frame({(1, 64, 32): 5.0}).to_parquet(file.path)
    assert latencies(file, folder) == [5.0]
    monkeypatch.setattr(cache, "IMPORTER_VERSION", 10**6)
    latencies(file, folder)
    assert len(list(folder.iterdir())) == 3


def test_a_cache_that_cannot_be_written_costs_no_plan(file: TableFile, tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where the folder should be")
    assert latencies(file, blocked) == sorted(TIMES.values())


WRITER = """
import sys
from pathlib import Path
from fleetplan.perfmodel.optables.cache import ImportedTables, file_sha256
from fleetplan.perfmodel.optables.measured.tables import TableFile
path, folder = map(Path, sys.argv[1:])
file = TableFile(path, "gemm", "vllm", "1.0", "test")
for _ in range(2):
    (rows,) = ImportedTables(file, file_sha256(path), folder).values()
    print(sorted(rows.latency_ms.tolist()))
"""


def test_two_processes_write_one_whole_file(file: TableFile, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    words = ["-c", WRITER, str(file.path), str(folder)]
    both = [WarmProcess(words, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    found = [line for each in both for line in each.communicate(timeout=100)[0].splitlines()]
    assert found == [str(sorted(TIMES.values()))] * 4
    assert [path.suffix for path in folder.iterdir()] == [".zip"]


@pytest.mark.parametrize("family", first_of(sorted(set().union(*FAMILIES.values())), 6))
def test_the_cache_returns_every_table_of_a_file(family: str, tmp_path: Path) -> None:
    """Files on wide expert parallelism hold two tables of a kind; the cache keeps both."""
    for framework in FRAMEWORKS:
        for file in table_files("h100_sxm", family, framework)[:1]:
            sha256 = file_sha256(file.path)
            first, again = (ImportedTables(file, sha256, tmp_path) for _ in range(2))
            assert list(first) == list(again) == [(rows.kind, rows.dtype) for rows in again.values()]
            for one, other in zip(first.values(), again.values(), strict=True):
                assert list(one.dims) == list(other.dims)
                assert all(np.array_equal(one.dims[name], other.dims[name]) for name in one.dims)
                assert np.array_equal(one.latency_ms, other.latency_ms)
                assert np.array_equal(one.provenance, other.provenance)


def test_tables_that_nobody_asks_for_are_not_read(
    write_table: TableWriter,
    tmp_path: Path,
    gemm_frame: Callable[..., pd.DataFrame],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A cached copy has one entry per table: only the table in use is read, with its columns together."""
    frames = [gemm_frame(TIMES, dtype) for dtype in ("bfloat16", "fp8", "nvfp4")]
    path = write_table("gemm", "vllm", "1.0", "gemm", pd.concat(frames))
    file = TableFile(path, "gemm", "vllm", "1.0", "test")
    ImportedTables(file, file_sha256(path), tmp_path / "cache")
    read: list[str] = []
    original = zipfile.ZipFile.read

    def counted(archive: zipfile.ZipFile, name: str) -> bytes:
        read.append(name)
        return original(archive, name)

    monkeypatch.setattr(zipfile.ZipFile, "read", counted)
    tables = ImportedTables(file, file_sha256(path), tmp_path / "cache")
    assert read == ["name"]
    assert tables[OperatorKind.GEMM, "fp8"].n_rows == len(TIMES)
    assert read == ["name", "name", "2.gemm.fp8"]
