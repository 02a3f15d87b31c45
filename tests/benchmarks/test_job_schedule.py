"""The schedule of measured jobs on other numbers of cores."""

from __future__ import annotations

import pytest
from benchmarks.job_schedule import UNLIMITED, JobBatch, MeasuredJob, batches_of, makespan_s

ROUND = JobBatch(1.0, (4.0, 2.0, 2.0), may_go_on=True)
MASTER = JobBatch(0.5, (3.0,))


@pytest.mark.parametrize(
    ("cores", "expected"),
    [(1, 2 * (1.0 + 8.0 + 0.5 + 3.0)), (2, 2 * (1.0 + 4.0 + 0.5 + 3.0)), (UNLIMITED, 17.0)],
)
def test_a_client_that_waits_for_all_adds_the_longest_core_of_each_batch(cores: int, expected: float) -> None:
    assert makespan_s([ROUND, MASTER, ROUND, MASTER], cores) == expected


def test_a_client_that_goes_on_early_works_beside_the_last_block() -> None:
    # Two cores: blocks end after 5 and 5; three cores: after 3, 3 and 5, the master runs from 3.5 to 6.5.
    assert makespan_s([ROUND, MASTER], 2, early=True) == 1.0 + 4.0 + 0.5 + 3.0
    assert makespan_s([ROUND, MASTER], 3, early=True) == 1.0 + 2.0 + 0.5 + 3.0
    assert makespan_s([ROUND, MASTER], 3) == 1.0 + 4.0 + 0.5 + 3.0


def test_the_bound_of_the_last_round_is_waited_for() -> None:
    assert makespan_s([ROUND], 3, early=True) == 1.0 + 4.0


def test_at_most_one_round_is_left_behind() -> None:
    long = JobBatch(0.0, (9.0, 1.0), may_go_on=True)
    assert makespan_s([long, long, MASTER], 8, early=True) == 9.0 + 0.5 + 3.0


def test_more_cores_never_take_longer_here_and_one_takes_the_sum() -> None:
    batches = [ROUND, MASTER, ROUND]
    spans = [makespan_s(batches, cores) for cores in (1, 2, 3, 8)]
    assert spans == sorted(spans, reverse=True)
    assert spans[0] == sum(batch.client_s + sum(batch.job_s) for batch in batches)


def test_jobs_become_batches_in_the_order_in_which_they_began() -> None:
    jobs = [
        MeasuredJob(1, "Job", 6.0, 7.0, 0.5),
        MeasuredJob(0, "Job", 1.0, 2.0, 0.8),
        MeasuredJob(0, "SiftingJob", 0.0, 4.0, 3.0),
        MeasuredJob(2, "Job", 8.0, 9.0, 0.9),
    ]
    first, second, third = batches_of(jobs, client_s=1.5, n_blocks=2)
    assert first == JobBatch(0.0, (3.0, 0.8), may_go_on=True, kind="SiftingJob")
    # Two seconds and one passed before these.
    assert second == JobBatch(1.0, (0.5,), kind="Job")
    assert third == JobBatch(0.5, (0.9,), kind="Job")
