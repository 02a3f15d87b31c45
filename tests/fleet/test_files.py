"""Files and folders that are there whole or not at all."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fleetplan.fleet import files
from fleetplan.fleet.files import FileNotWrittenError, write_whole, written_together, written_whole


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def fill(folder: Path, texts: dict[str, str], failure: BaseException | None = None) -> None:
    """Write texts together, and fail then."""
    with written_together(folder) as parts:
        for name, text in texts.items():
            write_whole(parts / name, text)
        if failure is not None:
            raise failure


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    target = tmp_path / "new" / "file.txt"
    write_whole(target, "one")
    write_whole(target, "zwölf")
    assert target.read_text(encoding="utf-8") == "zwölf"
    assert names(target.parent) == {"file.txt"}


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        write_whole(tmp_path / "file.txt", "one")
        with written_together(tmp_path / "folder") as parts:
            write_whole(parts / "inside.txt", "two")
        assert permissions(tmp_path / "file.txt") == 0o666 & ~mask
        assert permissions(tmp_path / "folder" / "inside.txt") == 0o666 & ~mask
        assert permissions(tmp_path / "folder") == 0o777 & ~mask
    finally:
        os.umask(before)


def test_a_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    target = tmp_path / "file.txt"
    write_whole(target, "one")
    target.chmod(0o640)
    write_whole(target, "two")
    with written_together(tmp_path) as parts:
        write_whole(parts / "file.txt", "three")
    assert (target.read_text(encoding="utf-8"), permissions(target)) == ("three", 0o640)


def test_a_write_that_fails_leaves_the_older_file(tmp_path: Path) -> None:
    target = tmp_path / "file.txt"
    write_whole(target, "old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(target, "new \ud800")
    with pytest.raises(FileNotWrittenError), written_whole(target) as part:
        part.write_text("half", encoding="utf-8") and tmp_path.read_text(encoding="utf-8")
    assert target.read_text(encoding="utf-8") == "old"
    assert names(tmp_path) == {"file.txt"}


def test_a_link_is_followed(tmp_path: Path) -> None:
    real, link = tmp_path / "real" / "file.txt", tmp_path / "link.txt"
    write_whole(real, "old")
    link.symlink_to(real)
    write_whole(link, "new")
    with written_together(tmp_path) as parts:
        write_whole(parts / "link.txt", "newer")
    assert link.is_symlink()
    assert real.read_text(encoding="utf-8") == "newer"
    assert names(real.parent) == {"file.txt"}


def test_a_device_is_written_to_and_stays(tmp_path: Path) -> None:
    write_whole(Path("/dev/null"), "nothing")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    with pytest.raises(FileNotWrittenError) as full:
        write_whole(Path("/dev/full"), "too much")
    assert full.value.errno == errno.ENOSPC
    (tmp_path / "plan.json").symlink_to("/dev/full")
    with pytest.raises(FileNotWrittenError), written_together(tmp_path) as parts:
        write_whole(parts / "plan.json", "too much")
    assert names(tmp_path) == {"plan.json"}


def test_a_pipe_gets_what_is_written_and_stays(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    with pytest.raises(FileNotWrittenError):
        write_whole(pipe, "nobody reads this")
    reader = threading.Thread(target=lambda: read.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    for _ in range(200):
        try:
            write_whole(pipe, "read")
            break
        except FileNotWrittenError:
            threading.Event().wait(0.01)
    reader.join(timeout=5)
    assert read == ["read"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert names(tmp_path) == {"pipe"}


def test_a_folder_of_the_name_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file.txt").mkdir()
    with pytest.raises(FileNotWrittenError, match=r"file\.txt: cannot be written: Is a directory"):
        write_whole(tmp_path / "file.txt", "one")
    with pytest.raises(FileNotWrittenError):
        fill(tmp_path, {"before.txt": "one", "file.txt": "two"})
    assert names(tmp_path) == {"file.txt"}


def test_files_of_a_folder_are_there_together_or_not_at_all(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    with pytest.raises(FileNotWrittenError):
        fill(folder, {"one.txt": "1"}, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    assert names(tmp_path) == set()
    write_whole(folder / "one.txt", "old")
    write_whole(folder / "mine.txt", "mine")
    with pytest.raises(KeyboardInterrupt):
        fill(folder, {"one.txt": "1"}, KeyboardInterrupt())
    assert (folder / "one.txt").read_text(encoding="utf-8") == "old"
    fill(folder, {"one.txt": "1", "deep/two.txt": "2"})
    assert names(folder) == {"one.txt", "mine.txt", "deep"}
    assert (folder / "deep" / "two.txt").read_text(encoding="utf-8") == "2"
    assert (folder / "one.txt").read_text(encoding="utf-8") == "1"


def test_what_killed_processes_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    child = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        check=False,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src")},
    )
    assert child.returncode == -signal.SIGKILL
    assert len([name for name in names(tmp_path) if name.startswith(".fleetplan-")]) == 2
    (tmp_path / ".fleetplan-ffffffff-1-of-another-machine").write_text("")
    (tmp_path / ".fleetplan-notes").write_text("")
    alive = [path.name for path in _parts_of(tmp_path, os.getpid())]
    write_whole(tmp_path / "plan.json", "new")
    kept = {".fleetplan-ffffffff-1-of-another-machine", ".fleetplan-notes", *alive}
    assert names(tmp_path) == {"plan.json", *kept}


def _parts_of(folder: Path, process: int) -> list[Path]:
    """Create the temporary file of a process that is still writing."""
    mark = files._machine_mark()
    part = folder / f"{mark}{process}-0"
    part.mkdir()
    return [part]


KILLED = """
import os, signal, sys
from pathlib import Path
from fleetplan.fleet.files import write_whole, written_together, written_whole

folder = Path(sys.argv[1])
with written_together(folder) as parts, written_whole(folder / "report.html"):
    write_whole(parts / "plan.json", "half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
