"""The one loop that Python calls, and where its machine code is kept."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, cast

import numba
from numba.core.event import Listener, install_listener

from fleetplan.fleet.files import is_cache_on, user_cache
from fleetplan.perfmodel.interruption import once_per_installation
from fleetplan.perfmodel.replay.compiled.batches import least_loaded, send
from fleetplan.perfmodel.replay.compiled.inner import compiled
from fleetplan.perfmodel.replay.compiled.iterations import PAUSED, RAN, advance
from fleetplan.perfmodel.replay.engine_state import NOBODY, BatchRules, PoolState

COMPILING: Final = "compiling the simulation, once per installation; no time limit counts this"
"""What is said to whoever waits for it."""


def run(first: int, last: int, until: float, most: int, rules: BatchRules, pool: PoolState) -> int:
    """Distribute requests to the engines, and run them.

    Parameters
    ----------
    first, last : int
        These requests, the last one excluded, are sent to the engine with the fewest unfinished ones when
        they arrive; requests of a session follow its first one.
    until : float
        Every iteration is run that starts before. [ms]
    most : int
        Turns that each engine may take after the last arrival.
    rules, pool
        Of the engines.

    Returns
    -------
    int
        `RAN`, `PAUSED`, or what could not be served.
    """
    if _machine_code:
        return _machine_code[0](first, last, until, most, rules, pool)
    # What cannot be kept is compiled when it is first called.
    with _told_if_compiled():
        _machine_code.append(_prepared(first, last, until, most, rules, pool))
        return _machine_code[0](first, last, until, most, rules, pool)


_machine_code: Final[list[Callable[..., int]]] = []
"""The loop, once this process has called it."""


def _prepared(*arguments: object) -> Callable[..., int]:
    """Return the loop for arguments of these types, from the cache if it was compiled before."""
    loop = _loop(_sources())
    types = tuple(map(numba.typeof, arguments))
    folder = _folder()
    if folder is not None:
        # No folder that can be written, a full disk, a damaged file: it is compiled for this process alone.
        with suppress(Exception), _kept_in(folder):
            kept = compiled(cache=True)(loop)
            kept.compile(types)
            return cast(Callable[..., int], kept)
    return cast(Callable[..., int], compiled()(loop))


@contextmanager
def _told_if_compiled() -> Iterator[None]:
    """Tell whoever waits as soon as numba compiles: it does not where it finds what was kept."""
    with ExitStack() as once, install_listener("numba:compile", _Compilation(once)):
        yield


class _Compilation(Listener):
    """Notes the first compilation: those of inner functions are parts of it."""

    def __init__(self, once: ExitStack) -> None:
        self._once = once
        self._is_told = False

    def on_start(self, event: object) -> None:
        """Tell that a compilation begins, for the first one."""
        if not self._is_told:
            self._is_told = True
            self._once.enter_context(once_per_installation(COMPILING))

    def on_end(self, event: object) -> None:
        """Do nothing: the first compilation lasts as long as all of them."""


def _folder() -> str | None:
    """Return the folder of machine code: beside bytecode in a checkout (empty), else in the user's cache.

    pip leaves files behind that it did not install, and a package of them would hide a later installation.
    """
    if not {"site-packages", "dist-packages"} & set(Path(__file__).parts):
        return ""
    if not is_cache_on():
        return None
    folder = Path(cast(Any, numba.config).CACHE_DIR or user_cache("compiled"))
    # Where it may not write, numba looks for another folder, and takes that of the modules.
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return str(folder)
    return None


@contextmanager
def _kept_in(folder: str) -> Iterator[None]:
    """Set numba's cache folder, or its default if empty; NUMBA_CACHE_DIR takes precedence."""
    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = before or folder
    try:
        yield
    finally:
        config.CACHE_DIR = before


def _sources() -> str:
    """Return the digest of all that is compiled."""
    room = Path(__file__).parent
    files = (*sorted(room.glob("*.py")), room.parent / "engine_state.py")
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def _loop(sources: str) -> Callable[..., int]:
    def loop(first: int, last: int, until: float, most: int, rules: BatchRules, pool: PoolState) -> int:
        # Machine code is kept under the variables that a function takes from around it: with other sources of
        # what it calls it is another one.
        if not sources:
            return PAUSED
        engines, requests = pool.engines, pool.requests
        chosen = requests[first - 1].engine if first else NOBODY
        for i in range(first, last):
            arrival = requests[i].arrival_ms
            for e in range(engines.size):
                # Engines that end nothing before this arrival need no look: their counts stand. Who was given
                # the last request has a new end.
                if e == chosen or engines[e].next_end_ms < arrival:
                    status = PAUSED
                    while status == PAUSED:
                        status = advance(e, arrival, most, rules, pool)
                    if status != RAN:
                        return status
            chosen = least_loaded(i, pool)
            requests[i].engine = chosen
            send(chosen, i, pool)
        status = RAN
        for e in range(engines.size):
            its = advance(e, until, most, rules, pool)
            if its != RAN and status in (RAN, PAUSED):
                status = its
        return status

    return loop
