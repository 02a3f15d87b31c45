"""Contents of the wheel: one top-level package, with its catalogues and scenarios."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
NEWEST_OF_SETUPTOOLS_TOO_OLD = 76
"""The build backend of pyproject.toml needs a later one (SPDX licence expressions)."""


def _can_build() -> bool:
    """Return whether `build` and a recent setuptools are installed, as by `pip install .[dev]`."""
    try:
        recent = int(version("setuptools").split(".")[0]) > NEWEST_OF_SETUPTOOLS_TOO_OLD
    except PackageNotFoundError:
        return False
    return recent and find_spec("build") is not None


def build_context() -> list[Path]:
    """Return the build context of the container, which .dockerignore limits to a list."""
    lines = (REPOSITORY / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert "*" in lines
    return [REPOSITORY / line[1:] for line in lines if line.startswith("!")]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Return the names of the files in a wheel, or in a build context with links as on Windows."""
    if not _can_build():
        pytest.skip("build and setuptools >= 77 are not installed")
    folder = tmp_path_factory.mktemp("packaging")
    source = folder / "source"
    source.mkdir()
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.pyc")
    for path in build_context():
        if path.is_dir():
            shutil.copytree(path, source / path.name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(path, source)
    for link in [path for path in (source / "src" / "fleetplan").iterdir() if path.is_symlink()]:
        target = link.readlink()
        link.unlink()
        # Git without links writes a file that names the target.
        link.write_text(str(target), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(folder),
        str(source),
    ]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout[-2000:] + built.stderr[-2000:]
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_fleetplan_is_the_only_top_level_name(names: set[str]) -> None:
    packages = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert packages == {"fleetplan"}


def test_no_module_needs_what_is_not_installed() -> None:
    for room in ("fleet", "perfmodel", "scenarios", "planner"):
        for path in (REPOSITORY / room).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            imported = re.findall(r"^\s*(?:import|from) (\w+)", text, flags=re.MULTILINE)
            assert not {"benchmarks", "tests"} & set(imported), path


def test_every_module_is_inside(names: set[str]) -> None:
    for room in ("fleet", "perfmodel", "scenarios", "planner"):
        for path in (REPOSITORY / room).rglob("*.py"):
            assert f"fleetplan/{path.relative_to(REPOSITORY).as_posix()}" in names
    assert "fleetplan/py.typed" in names


def test_catalogues_and_scenarios_are_inside(names: set[str]) -> None:
    data = [*(REPOSITORY / "fleet" / "catalog").glob("*.yaml")]
    kinds = ("yaml", "csv", "json")
    data += [path for kind in kinds for path in (REPOSITORY / "scenarios").rglob(f"*.{kind}")]
    assert data
    for path in data:
        assert f"fleetplan/{path.relative_to(REPOSITORY).as_posix()}" in names


@pytest.mark.parametrize("folder", ["planner/report/html", "planner/commands/page"])
def test_the_files_of_pages_are_inside(names: set[str], folder: str) -> None:
    files = [path for kind in ("j2", "css", "js") for path in (REPOSITORY / folder).glob(f"*.{kind}")]
    assert len(files) > 2
    for path in files:
        assert f"fleetplan/{path.relative_to(REPOSITORY).as_posix()}" in names


def test_the_commands_are_installed(names: set[str]) -> None:
    assert any(name.endswith("entry_points.txt") for name in names)
