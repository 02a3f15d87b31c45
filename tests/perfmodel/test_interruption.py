"""A computation ends at the first step after its time limit, and never without a limit."""

from __future__ import annotations

from threading import Thread

import pytest

from fleetplan.perfmodel.interruption import WorkInterruptedError, checkpoint, interruptible


def test_nothing_ends_without_a_limit() -> None:
    checkpoint()
    with interruptible(lambda: False):
        checkpoint()


def test_a_step_ends_what_is_over_and_nothing_after_it() -> None:
    with pytest.raises(WorkInterruptedError), interruptible(lambda: True):
        checkpoint()
    checkpoint()


def test_an_inner_limit_gives_way_to_the_outer_one() -> None:
    with interruptible(lambda: True):
        with interruptible(lambda: False):
            checkpoint()
        with pytest.raises(WorkInterruptedError):
            checkpoint()


def test_threads_have_limits_of_their_own() -> None:
    ended: list[bool] = []

    def work() -> None:
        checkpoint()
        ended.append(True)

    with interruptible(lambda: True):
        other = Thread(target=work)
        other.start()
        other.join()
    assert ended == [True]
