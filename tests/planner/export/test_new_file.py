"""User files are written in full, all or none, and replaced only on request."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleetplan.fleet.errors import InputError
from fleetplan.planner.export.new_file import write_new_files

TEXTS = {"first.yaml": "one", "second.csv": "two"}


def test_all_files_are_written(tmp_path: Path) -> None:
    write_new_files(tmp_path / "deep" / "folder", TEXTS, over=False)
    assert {each.name: each.read_text() for each in (tmp_path / "deep" / "folder").iterdir()} == TEXTS


def test_none_is_written_where_one_is_there(tmp_path: Path) -> None:
    (tmp_path / "second.csv").write_text("mine")
    with pytest.raises(InputError, match=r"second\.csv.*the file already exists"):
        write_new_files(tmp_path, TEXTS, over=False)
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"second.csv": "mine"}
    write_new_files(tmp_path, TEXTS, over=True)
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == TEXTS


def test_a_name_that_no_file_can_have_leaves_no_folder(tmp_path: Path) -> None:
    """A refused file name leaves no empty folder behind."""
    with pytest.raises(InputError, match="cannot be written"):
        write_new_files(tmp_path / "deep" / "folder", {"a": "one", "9" * 500: "two"}, over=True)
    assert list(tmp_path.iterdir()) == []
