"""Text files that are there whole or not at all."""

from pathlib import Path

import pytest

from fleetplan.fleet.files import write_whole


def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    target = tmp_path / "new" / "file.txt"
    write_whole(target, "one")
    write_whole(target, "zwölf")
    assert target.read_text(encoding="utf-8") == "zwölf"
    assert [path.name for path in target.parent.iterdir()] == ["file.txt"]
    (tmp_path / "plain").write_text("", encoding="utf-8")
    assert target.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_write_that_fails_leaves_the_older_file(tmp_path: Path) -> None:
    target = tmp_path / "file.txt"
    write_whole(target, "old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(target, "new \ud800")
    assert target.read_text(encoding="utf-8") == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["file.txt"]
