"""Jobs go to the next free process, the longest first, and are heard of when they end."""

from __future__ import annotations

import math
import pickle
import threading
import time
from collections.abc import Sequence

import numpy as np
import pytest
import scipy.sparse as sp
from tests.planner.search.solvers.small_jobs import at_least, jobs

from fleetplan.planner.search.solvers.highs_jobs import Answer, CompressedRows, Effort, Job, Rows, StackedRows
from fleetplan.planner.search.solvers.highs_process import HighsProcess, ProcessLostError, Programs
from fleetplan.planner.search.solvers.idle_processes import IDLE
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.solvers.job_times import JobTime
from fleetplan.planner.search.solvers.seats import BATCH_S, BATCHES_A_PROCESS, ProcessSeats, SeatsLostError
from fleetplan.planner.search.solvers.workers import UNKNOWN, Workers, WorkersStoppedError, ending, pickled


def alone(program: Rows) -> StackedRows:
    """A stack of one program."""
    matrix = program.rows
    rows = CompressedRows(matrix.shape, matrix.indptr, matrix.indices, matrix.data)
    ends = [np.array([0, size], dtype=np.int64) for size in matrix.shape]
    limits = (program.row_lower, program.row_upper, program.lower, program.upper)
    return StackedRows(rows, *limits, program.whole, *ends)


def test_answers_come_in_the_order_of_the_jobs_and_are_heard_longest_first() -> None:
    heard: list[int] = []
    with Workers(ProcessSeats(1)) as workers:
        answers = workers.solve(jobs(1.0, 3.0, 2.0), on_answer=lambda number, _: heard.append(number))
    assert [answer.objective for answer in answers] == [1.0, 2.0, 3.0]
    assert heard == [1, 2, 0]


def test_jobs_after_the_time_is_over_are_answered_with_nothing_known() -> None:
    with Workers(ProcessSeats(1)) as workers:
        answers = workers.solve(jobs(1.0, 2.0), expired=lambda: True)
    assert answers == [UNKNOWN, UNKNOWN]


def test_a_listener_that_fails_is_not_waited_for() -> None:
    def fail(_: int, __: Answer) -> None:
        raise RuntimeError("no")

    with Workers(ProcessSeats(2)) as workers, pytest.raises(RuntimeError, match="no"):
        workers.solve(jobs(1.0, 2.0, 3.0), on_answer=fail)


def test_a_stop_while_a_job_is_being_sent_closes_all_pipes() -> None:
    seats = ProcessSeats(2)
    children = [each.process for each in seats.processes]
    for child in children:
        assert child.stdin is not None
        child.stdin.write(b"part of a job")
    Workers(seats).stop_search()
    assert all(pipe is not None and pipe.closed for each in children for pipe in (each.stdin, each.stdout))


def test_the_next_search_asks_the_same_processes_which_know_its_programs_alone() -> None:
    seen, known = [], np.ones(1)
    for least in (1.0, 2.0):
        seats = ProcessSeats(2, Programs.of(alone(at_least(least))))
        with Workers(seats) as workers:
            seen.append(set(seats.processes))
            job = Job(0, known, Effort(None, 100, 0.0))
            assert [each.objective for each in workers.solve([job] * 4)] == [least] * 4
    last = ProcessSeats(1)
    assert seen[0] == seen[1] >= set(last.processes)
    with Workers(last) as workers, pytest.raises(RuntimeError, match="unexpectedly"):
        workers.solve([Job(0, known, Effort(None, 100, 0.0))])


def test_a_process_whose_answer_nobody_waited_for_is_asked_nothing_more() -> None:
    seats = ProcessSeats(2)
    with Workers(seats) as workers:
        workers.begin(jobs(1.0)[0])
    assert not any(process.lives for process in seats.processes)
    others = ProcessSeats(2)
    with Workers(others) as workers:
        assert not set(seats.processes) & set(others.processes)
        assert [answer.objective for answer in workers.solve(jobs(1.0, 2.0))] == [1.0, 2.0]


def test_a_process_that_has_waited_too_long_is_ended_and_one_that_died_is_not_asked() -> None:
    seats = ProcessSeats(2)
    with Workers(seats) as workers:
        workers.solve(jobs(1.0, 2.0))
    first, second = seats.processes
    IDLE.end_all(idle_s=60.0)
    assert first.lives
    assert second.lives
    first.process.kill()
    first.process.wait()
    seats = ProcessSeats(2)
    with Workers(seats) as workers:
        assert first not in seats.processes
        assert second in seats.processes
        assert [answer.objective for answer in workers.solve(jobs(1.0, 2.0))] == [1.0, 2.0]
    IDLE.end_all()
    assert not any(process.lives for process in seats.processes)


def test_a_job_whose_process_is_killed_is_done_by_a_new_one() -> None:
    seats = ProcessSeats(2)
    for process in seats.processes:
        process.process.kill()
        process.process.wait()
    with Workers(seats) as workers:
        assert [answer.objective for answer in workers.solve(jobs(1.0, 2.0))] == [1.0, 2.0]
        assert all(process.lives for process in seats.processes)


def test_a_job_that_kills_each_process_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(process: HighsProcess, *_: object) -> Answer:
        process.process.kill()
        raise ProcessLostError

    monkeypatch.setattr(HighsProcess, "ask", killed)
    with Workers(ProcessSeats(1)) as workers, pytest.raises(SeatsLostError, match="3 solver processes"):
        workers.solve(jobs(1.0))


def wide(length: int) -> Job:
    """Return a linear program with this number of variables, and an answer of the same size."""
    rows = Rows(
        sp.csr_array(np.ones((1, length))),
        np.array([float(length)]),
        np.array([np.inf]),
        np.zeros(length),
        np.full(length, 99.0),
        np.zeros(length, dtype=bool),
    )
    return Job(rows, np.ones(length), None)


def test_jobs_that_are_sent_before_others_are_answered_keep_their_order_however_large() -> None:
    lengths = [1, 30_000, 2, 3, 200, 20_000, 500, *range(4, 40), 10_000, 9_000]
    seats = ProcessSeats(1)
    with Workers(seats):
        answers = seats.ask(0, [pickled(wide(each)) for each in lengths])
    assert [answer.objective for answer in answers] == lengths


def test_short_jobs_go_several_at_a_time_while_many_wait() -> None:
    seats = ProcessSeats(2)
    with Workers(seats):
        assert seats.batch(1000, math.inf) == 1
        assert seats.batch(1000, BATCH_S / 5) == 5
        assert seats.batch(1000, 2 * BATCH_S) == 1
        assert seats.batch(3 * 2 * BATCHES_A_PROCESS, BATCH_S / 5) == 3
        assert seats.batch(1, BATCH_S / 5) == 1


def test_a_job_in_the_background_has_a_process_of_its_own() -> None:
    with Workers(ProcessSeats(2)) as workers:
        background = workers.begin(jobs(1.0)[0])
        with pytest.raises(ValueError, match="background"):
            workers.begin(jobs(1.0)[0])
        assert [answer.objective for answer in workers.solve(jobs(1.0, 2.0))] == [1.0, 2.0]
        workers.wait(background)
        assert background.ordered[0].objective == 1.0
        assert not background.running
        assert [answer.objective for answer in workers.solve(jobs(1.0, 2.0))] == [1.0, 2.0]
    with Workers(ProcessSeats(1)) as alone, pytest.raises(ValueError, match="background"):
        alone.begin(jobs(1.0)[0])


class HeldSeats:
    """Two seats that answer with the least value at once, but hold one job until it is let go."""

    def __init__(self, held: float) -> None:
        self.count = 2
        self.ended = False
        self.let_go = threading.Event()
        self._held = held

    def batch(self, waiting: int, job_s: float) -> int:
        del waiting
        return 1

    def ask(self, seat: int, asked: Sequence[bytes]) -> list[Answer]:
        del seat
        least = [float(pickle.loads(job).rows.row_lower[0]) for job in asked]
        if self._held in least:
            assert self.let_go.wait(30.0)
        return [Answer(np.array([each]), each, each) for each in least]

    def end(self) -> None:
        self.ended = True
        self.let_go.set()

    def leave(self) -> None:
        assert not self.ended


def test_who_has_enough_answers_goes_on_and_hears_the_last_one_later() -> None:
    seats, heard, noted = HeldSeats(1.5), [], []
    with Workers(seats, lambda answers: noted.append(len(answers))) as workers:
        batch = workers.give(jobs(1.0, 2.0, 3.0), on_answer=lambda number, _: heard.append(number))
        workers.wait(batch, lambda: len(batch.answers) == 2)
        assert sorted(heard) == [0, 2]
        assert batch.running
        # The other seat does what is given next, while one is held.
        assert workers.solve_one(jobs(1.0)[0]).objective == 0.5
        assert noted == [1]
        seats.let_go.set()
        workers.wait(batch)
        assert sorted(heard) == [0, 1, 2]
        assert noted == [1, 3]
    assert not seats.ended


def test_who_waits_no_longer_than_some_time_hears_the_answer_later() -> None:
    seats = HeldSeats(0.5)
    with Workers(seats) as workers:
        batch = workers.give(jobs(1.0))
        workers.wait(batch, most_s=0.05)
        assert not batch.complete
        seats.let_go.set()
        workers.wait(batch)
        assert batch.ordered[0].objective == 0.5


def test_workers_whose_last_answer_nobody_heard_end_their_seats() -> None:
    seats = HeldSeats(1.5)
    with Workers(seats) as workers:
        batch = workers.give(jobs(1.0, 2.0))
        workers.wait(batch, lambda: bool(batch.answers))
    assert seats.ended


def test_the_times_of_jobs_are_told_by_batch() -> None:
    times: list[JobTime] = []
    with Workers(ProcessSeats(1), on_job=times.append) as workers:
        workers.solve(jobs(1.0, 2.0))
        workers.solve_one(jobs(1.0)[0])
    assert [each.batch for each in times] == [0, 0, 1]
    assert all(each.wall_s > 0 for each in times)
    assert times[0].began_s + times[0].wall_s <= times[1].began_s


@pytest.mark.parametrize("limit_s", [math.inf, 0.0])
def test_a_stop_or_the_clock_ends_the_workers(limit_s: float) -> None:
    stop = Stop()
    if limit_s == math.inf:
        stop.request()
    with Workers(ProcessSeats(1)) as workers, ending(workers, stop, limit_s):
        time.sleep(0.2)
        with pytest.raises(WorkersStoppedError):
            workers.solve(jobs(1.0, 2.0))
