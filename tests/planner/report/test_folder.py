"""An output folder is complete or absent, at any point where the disk is full."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from tests.parts import first_parts
from tests.planner.whole_fleet import whole_fleet, whole_plan

from fleetplan.fleet.errors import InputError
from fleetplan.planner.plan import Plan
from fleetplan.planner.report.folder import write_folder


def written(folder: Path, plan: Plan) -> None:
    write_folder(plan, folder, whole_fleet(), None, lambda _: None)


@pytest.mark.usefixtures("plain_figures")
@pytest.mark.parametrize("every", first_parts((6, 1), 1))
def test_a_full_disk_leaves_no_part_of_a_run(
    every: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Full at the first and the last file and at some or all between them."""
    plan = whole_plan().plan
    assert plan is not None
    written(tmp_path / "whole", plan)
    count = len(list((tmp_path / "whole").iterdir()))
    assert count >= 17
    write = Path.write_bytes
    for fits in {*range(0, count, every), count - 1}:
        calls = []

        def full(path: Path, content: bytes, calls: list[Path] = calls, fits: int = fits) -> int:
            calls.append(path)
            if len(calls) > fits:
                write(path, content[: len(content) // 2])
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return write(path, content)

        monkeypatch.setattr(Path, "write_bytes", full)
        with pytest.raises(InputError, match="No space left on device"):
            written(tmp_path / "run", plan)
        assert not (tmp_path / "run").exists()
    monkeypatch.setattr(Path, "write_bytes", write)
    written(tmp_path / "run", plan)
    assert len(list((tmp_path / "run").iterdir())) == count


@pytest.mark.usefixtures("plain_figures")
def test_an_older_run_stays_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = whole_plan().plan
    assert plan is not None
    written(tmp_path, plan)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(path: Path, content: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(InputError):
        written(tmp_path, plan.model_copy(update={"fleet": "another"}))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
