"""Location of the engines' machine code, and the behaviour without a writable folder."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from tests.warm import ran

from fleetplan.fleet.files import SWITCH
from fleetplan.perfmodel.interruption import interruptible, once_s
from fleetplan.perfmodel.replay.compiled import loop
from fleetplan.perfmodel.replay.engine import PoolRun
from fleetplan.perfmodel.replay.engine_state import EngineLimits
from fleetplan.perfmodel.serving import Requests, StepCosts

PROGRAM = """\
import numpy as np
from fleetplan.perfmodel.replay.engine_state import EngineLimits
from fleetplan.perfmodel.replay.pools import run_engines
from fleetplan.perfmodel.serving import Requests, StepCosts

random = np.random.default_rng(3)
tables = (0.01 * np.arange(200), 0.1 * np.arange(9), 1e-4 * np.arange(9), 0.05 * np.arange(80))
costs = StepCosts(*(tuple((1.0 + table).tolist()) for table in tables))
lengths = (random.integers(1, 400, 60), random.integers(0, 99, 60), random.integers(1, 50, 60))
wanted = Requests(np.cumsum(random.exponential(9.0, 60)), *lengths, random.integers(-1, 9, 60))
log = run_engines(costs, EngineLimits(8, 128, 1500, True, 900), wanted, 2, "least-loaded", seed=1)
print(log.finish_ms.tolist(), log.preemptions.sum(), log.computed_tokens.tolist())
"""
"""Engines with prompts apart, sessions and preemptions."""


def answer(**environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def usual_answer() -> str:
    """The answer of compiled loops, as users have them."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(PROGRAM, {})
    return said.getvalue()


def test_python_gives_the_same_answer() -> None:
    without = f"{PROGRAM}\nimport numba; assert numba.config.DISABLE_JIT\n"
    # numba is imported where engines are simulated: not yet where a warm process begins.
    done = ran(["-c", without], env=os.environ | {"NUMBA_DISABLE_JIT": "1"}, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == usual_answer()


@pytest.mark.slow
def test_damaged_machine_code_is_compiled_again(tmp_path: Path) -> None:
    expected = answer(NUMBA_CACHE_DIR=str(tmp_path))
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.suffix for path in kept} == {".nbi", ".nbc"}
    for damage in (b"", b"not what numba wrote"):
        for path in kept:
            path.write_bytes(damage)
        assert answer(NUMBA_CACHE_DIR=str(tmp_path)) == expected


@pytest.mark.parametrize("fails", ["to find a folder", "to write"])
def test_machine_code_that_cannot_be_kept_is_made_for_the_process_alone(
    fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with no folder at all, which `make slow` tries: numba compiles for some seconds."""
    asked: list[bool] = []

    def failing(*_: object) -> None:
        raise RuntimeError("cannot cache function: no locator available")

    def compiled(cache: bool = False) -> Callable[[Callable[..., int]], object]:
        def decorated(function: Callable[..., int]) -> object:
            asked.append(cache)
            if cache and fails == "to find a folder":
                failing()
            return SimpleNamespace(compile=failing) if cache else function

        return decorated

    monkeypatch.setattr(loop, "compiled", compiled)
    before = numba.config.CACHE_DIR
    found = loop._prepared(0, 1.0)
    assert asked == [True, False]
    assert callable(found)
    assert before == numba.config.CACHE_DIR


@pytest.mark.slow
def test_no_folder_for_machine_code_is_no_error(tmp_path: Path) -> None:
    # Neither can be written: a file stands where bytecode goes, and a device has no folders.
    source = Path(loop.__file__).parents[3]
    shutil.copytree(source, tmp_path / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    (room,) = tmp_path.rglob("compiled")
    (room / "__pycache__").write_text("", encoding="utf-8")
    found = answer(PYTHONPATH=str(tmp_path), HOME="/dev/null", XDG_CACHE_HOME="/dev/null/none")
    assert found == usual_answer()
    assert not list(tmp_path.rglob("*.nb?"))


def small(first: int, until: float) -> int:
    """A loop that numba compiles in a moment."""
    return first + int(until)


@pytest.mark.parametrize("home", ["cache", "/dev/null/none"])
def test_what_pip_installed_keeps_machine_code_in_the_cache_or_nowhere(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An installed package keeps machine code in a writable cache or nowhere.

    numba compiles a small function here; `make slow` compiles the whole loop of an installation.
    """
    monkeypatch.setattr(loop, "__file__", "/site-packages/fleetplan/perfmodel/replay/compiled/loop.py")
    monkeypatch.setattr(loop, "_sources", lambda: "")
    monkeypatch.setattr(loop, "_loop", lambda _: small)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / home))
    assert loop._prepared(3, 4.0)(3, 4.0) == 7
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.suffix for path in kept} == ({".nbi", ".nbc"} if home == "cache" else set())
    assert not list(Path(__file__).parent.rglob("*small*.nb?"))


@pytest.mark.slow
def test_what_pip_installed_leaves_nothing_where_it_lies(tmp_path: Path) -> None:
    """An installed package writes machine code to the cache only, never beside its modules."""
    source = Path(loop.__file__).parents[3]
    site = tmp_path / "site-packages"
    shutil.copytree(source, site / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    found = answer(PYTHONPATH=str(site), XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert found == usual_answer()
    assert not list(site.rglob("*.nb?"))
    assert {path.suffix for path in (tmp_path / "cache").rglob("*.nb?")} == {".nbi", ".nbc"}


@pytest.mark.parametrize(
    ("place", "switch", "folder"),
    [
        ("checkout", "on", ""),
        ("checkout", "off", ""),
        ("site-packages", "on", "compiled"),
        ("dist-packages", "on", "compiled"),
        ("site-packages", "off", None),
    ],
)
def test_machine_code_is_kept_beside_a_checkout_and_else_in_the_cache_if_there_is_one(
    place: str, switch: str, folder: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(loop, "__file__", f"/{place}/fleetplan/perfmodel/replay/compiled/loop.py")
    monkeypatch.setenv(SWITCH, switch)
    found = loop._folder()
    assert found == folder if not folder else Path(str(found)).name == folder


def test_other_sources_are_other_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what a function calls in other files numba keeps no track."""
    first, second = (loop._loop(sources).__closure__ for sources in ("one", "other"))
    assert first is not None
    assert second is not None
    assert [cell.cell_contents for cell in first] != [cell.cell_contents for cell in second]
    before = loop._sources()
    monkeypatch.setattr(Path, "read_bytes", lambda self: str(self).encode())
    assert loop._sources() != before


def test_costs_must_reach_what_engines_may_do() -> None:
    """Compiled loops would read times that are not there."""
    costs = StepCosts((1.0,) * 101, (0.0,) * 9, (0.0,) * 9, (0.0,) * 11)
    one = np.array([1])

    def engines(limits: EngineLimits, prompt: int = 150, count: int = 9) -> PoolRun:
        ones = np.repeat(one, count)
        return PoolRun(costs, limits, Requests(0.0 * ones, prompt * ones, 0 * ones, ones))

    engines(EngineLimits(8, 100, 10**6))
    # More places than requests are never taken.
    engines(EngineLimits(9, 100, 10**6), count=8)
    for limits, prompt in ((EngineLimits(9, 100, 10**6), 150), (EngineLimits(8, 101, 10**6), 150)):
        with pytest.raises(ValueError, match="costs reach"):
            engines(limits, prompt)
    with pytest.raises(ValueError, match="costs reach"):
        engines(EngineLimits(8, 100, 10**6), prompt=160)


@pytest.mark.parametrize("folder", ["kept", None])
def test_who_waits_is_told_of_a_compilation_and_not_of_kept_code(
    folder: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_first(first: int, last: int, until: float, most: int, rules: int, pool: int) -> int:
        return 2 * first

    monkeypatch.setattr(loop, "_loop", lambda _: of_first)
    monkeypatch.setattr(loop, "_folder", lambda: folder and str(tmp_path / folder))
    told: list[str] = []
    before_s = once_s()
    for number in (1, 2):
        # As another process finds it.
        monkeypatch.setattr(loop, "_machine_code", [])
        with interruptible(lambda: False, told.append):
            for first in (4, 5):
                assert loop.run(first, 0, 0.0, 0, 1, 2) == 2 * first  # type: ignore[arg-type]
        assert told == [loop.COMPILING] * (1 if folder else number)
    assert once_s() > before_s
