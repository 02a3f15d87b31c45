"""Newer tables of the package's layout, from a folder that the user named."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
from tests.perfmodel.optables.conftest import SYSTEM, TableWriter
from typer.testing import CliRunner

from fleetplan.fleet.errors import InputError
from fleetplan.perfmodel.operators import OperatorKind
from fleetplan.perfmodel.optables import TableLibrary, operator_source
from fleetplan.perfmodel.optables.measured import folders
from fleetplan.perfmodel.optables.measured.tables import table_files
from fleetplan.planner.cli import app

OLD = {(1, 64, 32): 1.0}
NEW = {(1, 64, 32): 3.0}


@pytest.fixture(autouse=True)
def own_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Hide the user's folders and the package from the tests."""
    note = tmp_path / "user" / "table-folders.json"
    monkeypatch.setattr(folders, "note_file", lambda: note)
    monkeypatch.setattr(folders, "data_folder", lambda: None)
    operator_source.cache_clear()
    yield note
    operator_source.cache_clear()


@pytest.fixture
def newer(
    write_table: TableWriter, gemm_frame: Callable[..., pd.DataFrame], tmp_path: Path
) -> Callable[[str, str, dict[tuple[int, int, int], float]], Path]:
    """Write a table of GEMMs of a version into an unpacked package, and return it."""

    def write(name: str, version: str, nodes: dict[tuple[int, int, int], float]) -> Path:
        write_table("gemm", "vllm", version, "gemm", gemm_frame(nodes))
        systems = tmp_path / name / "systems" / "data"
        systems.parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data").rename(systems)
        return tmp_path / name

    return write


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["optables", *arguments])
    return result.exit_code, result.output


def test_a_used_folder_brings_newer_versions(
    newer: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    package = newer("package", "0.24.0", OLD) / "systems" / "data"
    monkeypatch.setattr(folders, "data_folder", lambda: package)
    folder = newer("wheel", "0.31.0", NEW)
    assert TableLibrary(SYSTEM).versions("vllm") == ("0.24.0",)
    before = TableLibrary(SYSTEM).file_hashes()
    code, text = run("use", str(folder))
    assert code == 0
    assert f"{SYSTEM} vllm 0.31.0" in text
    assert TableLibrary(SYSTEM).versions("vllm") == ("0.31.0", "0.24.0")
    assert TableLibrary(SYSTEM).file_hashes() != before
    for version, latency_ms in (("", 3.0), ("0.31.0", 3.0), ("0.24.0", 1.0)):
        chosen = TableLibrary(SYSTEM, version=version).rows(OperatorKind.GEMM, "bf16", "vllm")
        assert chosen is not None
        assert chosen.rows.latency_ms.tolist() == [latency_ms]
    code, _ = run("forget", str(folder))
    assert code == 0
    assert TableLibrary(SYSTEM).versions("vllm") == ("0.24.0",)


def test_the_folder_named_last_counts(newer: Callable[..., Path]) -> None:
    first, second = newer("first", "1.0", OLD), newer("second", "1.0", NEW)
    for folder in (first, second, first):
        run("use", str(folder))
        (file,) = table_files(SYSTEM, "gemm", "vllm")
        assert file.path.is_relative_to(folder)
        assert file.package == "folder"


def test_a_used_folder_counts_before_the_package_for_the_same_version(
    newer: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    package = newer("package", "1.0", OLD) / "systems" / "data"
    monkeypatch.setattr(folders, "data_folder", lambda: package)
    used = newer("wheel", "1.0", NEW)
    run("use", str(used))
    (file,) = table_files(SYSTEM, "gemm", "vllm")
    assert file.path.is_relative_to(used)


def test_what_is_no_folder_of_tables_is_refused(tmp_path: Path, own_note: Path) -> None:
    (tmp_path / "empty").mkdir()
    absent = [(name, "no such folder") for name in ("missing", "9" * 300)]
    for name, message in (*absent, ("empty", "has no measured tables")):
        with pytest.raises(InputError, match=message):
            CliRunner().invoke(app, ["optables", "use", str(tmp_path / name)], catch_exceptions=False)
    assert not own_note.exists()


def test_a_damaged_table_is_named(newer: Callable[..., Path], own_note: Path) -> None:
    folder = newer("wheel", "1.0", OLD)
    (table,) = folder.rglob("*.parquet")
    table.write_bytes(b"PAR1 no more")
    with pytest.raises(InputError, match=r"gemm_perf\.parquet: cannot be read as a table of gemm"):
        CliRunner().invoke(app, ["optables", "use", str(folder)], catch_exceptions=False)
    assert not own_note.exists()


def test_a_folder_that_is_gone_is_said_and_can_be_forgotten(newer: Callable[..., Path]) -> None:
    folder = newer("wheel", "1.0", OLD)
    run("use", str(folder))
    folder.rename(folder.with_name("elsewhere"))
    with pytest.raises(InputError, match="this folder of tables no longer exists"):
        table_files(SYSTEM, "gemm", "vllm")
    assert run("forget", str(folder))[0] == 0
    assert table_files(SYSTEM, "gemm", "vllm") == ()
    with pytest.raises(InputError, match="no folder is used"):
        CliRunner().invoke(app, ["optables", "forget", str(folder)], catch_exceptions=False)
