"""Random fleets hold: 13 in `make test`, 200 with `make slow`; `make soak` tries ten thousand larger ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from fleetplan.planner.search.blocks import solve
from tests.cache_home import own_cache_home
from tests.fuzz import tampered
from tests.fuzz.fleets import random_fleet
from tests.fuzz.keys import KeyCoverage
from tests.fuzz.laws import LAWS
from tests.fuzz.trial import TrialEffort, try_fleet
from tests.measured import needs_tables
from tests.parts import first_parts

FLEETS = 200
EVERY_KEY = (22, 62, 96, 103, 115, 145, 149, 153, 166, 168, 186)
"""Seeds of fleets that have every documented key together; a greedy choice of the 200."""

ASKED = (0, 1)
"""Seeds of fleets of which one is held to a law and one asked a question."""

FIRST = (*EVERY_KEY, 0, 1, 4, 8, 9, 17)
"""Seeds of fleets that have most pairs of keys together."""

SIZE = 10
"""Fleets of one test of `make slow`, which tries all of them."""

EFFORT = TrialEffort(most_cells=3, time_limit_s=1.0, gap_ratio=0.01)
LESS = replace(EFFORT, time_limit_s=0.25, questions=0, tamperings=3)
"""What `make test` does with a fleet; a question takes as long as several of them."""

MORE = replace(EFFORT, tamperings=10)
"""What `make slow` does with it; changes of the plans of all fleets are some thousand, of every field."""
LAW_EVERY, QUESTION_EVERY = 4, 8
LEAST_PLANS = 0.3
"""Share of the fleets of each part: those that cannot be served say little."""

LEAST_PAIRS = {len(FIRST): 0.65, FLEETS: 0.94}
"""Share of the pairs of keys that may go together, by fleets; a thousand of them have 98 % of the pairs."""

IN_BLOCKS = (1, 4, 5, 7)
"""Seeds of fleets that are solved block by block although they are small; one of them by `make test`."""


@pytest.fixture(scope="module")
def cache_of_fleets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return own_cache_home(tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True)
def own_cache(cache_of_fleets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of an earlier run is believed but imported operator tables."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_of_fleets))


@needs_tables
@pytest.mark.parametrize("seeds", first_parts((FIRST, range(FLEETS)), 1), ids=("first", "all"))
def test_every_key_and_most_pairs_are_covered(seeds: Sequence[int]) -> None:
    seen = KeyCoverage()
    for seed in seeds:
        seen.add(random_fleet(seed, EFFORT.most_cells).file)
    assert seen.missing_keys == [], "documented keys that no fleet has: write them in tests/fuzz/fleets"
    least = LEAST_PAIRS[len(seeds)]
    assert seen.pair_ratio >= least, f"{seen}: {[sorted(pair) for pair in seen.missing_pairs[:20]]}"


TRIED = (
    (EVERY_KEY, LESS),
    (ASKED, replace(LESS, questions=1)),
    *((range(start, start + SIZE), MORE) for start in range(0, FLEETS, SIZE)),
)


@needs_tables
@pytest.mark.parametrize(
    ("seeds", "usual"),
    first_parts(TRIED, 2),
    ids=("every key", "asked", *(f"{seeds[0]}-{seeds[-1]}" for seeds, _ in TRIED[2:])),
)
def test_random_fleets_hold(seeds: Sequence[int], usual: TrialEffort, tmp_path: Path) -> None:
    kinds: Counter[str] = Counter()
    failures = []
    for seed in seeds:
        asked = usual.questions if seed % QUESTION_EVERY == 1 else 0
        effort = replace(usual, laws=int(seed % LAW_EVERY == 0), questions=asked)
        report = try_fleet(seed, effort, tmp_path / str(seed))
        kinds[report.kind] += 1
        failures += [f"seed {seed}: {failure}" for failure in report.failures]
    assert failures == []
    assert kinds["plan"] >= LEAST_PLANS * len(seeds)


@needs_tables
@pytest.mark.parametrize("seed", first_parts(IN_BLOCKS, 1, more=1))
def test_fleets_hold_that_are_solved_in_blocks(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solve, "LEAST_VARIABLES", 1)
    monkeypatch.setattr(solve, "LEAST_BLOCKS", 1)
    monkeypatch.setattr(solve, "LARGEST_BLOCK_SHARE", 1.0)
    report = try_fleet(seed, replace(EFFORT, questions=0), tmp_path)
    assert report.failures == []
    assert report.kind == "plan"


OVERRUN = 921675
"""A fleet that CP-SAT had proven after 0.04 s; one of its neighbourhoods then held it up for 14 s, twice."""


@needs_tables
def test_a_solve_does_not_wait_for_a_neighbourhood_of_cpsat(tmp_path: Path) -> None:
    effort = replace(MORE, laws=0, questions=0, tamperings=0, time_limit_s=3.0, workers=8, overrun_s=5.0)
    assert try_fleet(OVERRUN, effort, tmp_path).failures == []


@needs_tables
def test_what_nobody_notices_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tampered, "verify", lambda *_: [])
    report = try_fleet(1, replace(LESS, laws=0, tamperings=5), tmp_path)
    assert report.kind == "plan"
    assert len(report.failures) >= 2
    assert all(failure.startswith("not noticed: ") for failure in report.failures)


def test_the_dice_of_a_seed_fall_alike() -> None:
    one, other = random_fleet(7), random_fleet(7)
    assert (one.file, one.tables) == (other.file, other.tables)


def test_every_law_is_tried() -> None:
    assert len({law.__name__ for law in LAWS}) == 10
