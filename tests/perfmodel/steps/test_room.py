"""The longest sequence that a layout has memory for, against memory itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fleetplan.fleet.catalog.hardware_and_prices import accelerators
from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.architecture import load_architecture
from fleetplan.perfmodel.parallelism import Layouts, parse_parallelism
from fleetplan.perfmodel.steps import StepShape, memory_use, part_dtypes, room
from fleetplan.perfmodel.steps.room import longest_sequence_tokens

LLAMA = load_architecture("llama3.1-70b", Path())
DTYPES = part_dtypes(LLAMA, Precision("fp8", "fp8"))
H100 = accelerators()["H100-SXM"]


def fits(label: str, cached: int, computed: int) -> bool:
    one = np.ones(1, dtype=np.int64)
    layouts = Layouts.of([parse_parallelism(label)])
    shape = StepShape(layouts, one, computed * one, 0 * one, 0 * one, 0 * one)
    use = memory_use(LLAMA, DTYPES, H100, shape, one, cached * one, "microbatch")
    return bool(use.fits[0])


@pytest.mark.parametrize("label", ["TP1", "TP2", "PP2", "TP8"])
@pytest.mark.parametrize("step", [1, 2048, None])
def test_one_token_more_has_no_room(label: str, step: int | None) -> None:
    tokens = longest_sequence_tokens(LLAMA, DTYPES, H100, parse_parallelism(label), step)
    assert fits(label, tokens, step or tokens)
    assert not fits(label, tokens + 1, step or tokens + 1) or tokens == 2**22


def test_llama_70b_on_one_card_cannot_hold_all_positions_of_its_config() -> None:
    tokens = longest_sequence_tokens(LLAMA, DTYPES, H100, parse_parallelism("TP1"), 2048)
    assert LLAMA.max_context_tokens is not None
    assert 0 < tokens < LLAMA.max_context_tokens
    whole = longest_sequence_tokens(LLAMA, DTYPES, H100, parse_parallelism("TP1"), None)
    drafted = longest_sequence_tokens(LLAMA, DTYPES, H100, parse_parallelism("TP1"), 2048, beside_gib=1.0)
    assert whole < tokens
    assert drafted < tokens


def test_what_does_not_fit_has_no_room() -> None:
    bf16 = part_dtypes(LLAMA, Precision("bf16", "bf16"))
    assert longest_sequence_tokens(LLAMA, bf16, H100, parse_parallelism("TP1"), 1) == 0


def test_lengths_are_tried_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest sequence that fits is searched by a few vectorised calls, not one length at a time."""
    tried: list[int] = []

    def noted(*given: object) -> object:
        tried.append(1)
        return memory_use(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(room, "memory_use", noted)
    longest_sequence_tokens(LLAMA, DTYPES, H100, parse_parallelism("TP1"), 2048)
    assert len(tried) <= 4
