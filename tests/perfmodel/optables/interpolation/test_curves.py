"""Tables of operators whose time one dimension decides, by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.operators import OperatorKind, Provenance
from fleetplan.perfmodel.optables import OperatorSource, operator_source, read_own_table

ROWS = """\
operator,dtype,traffic_bytes,message_bytes,latency_us
elementwise,bf16,1000,,3
elementwise,bf16,2000,,2
elementwise,bf16,4000,,6
send_recv,bf16,,1000,10
send_recv,bf16,,3000,20
"""


@pytest.fixture
def source(toy: Accelerator, tmp_path: Path) -> Callable[[], OperatorSource]:
    path = tmp_path / "own.csv"
    path.write_text(ROWS, encoding="utf-8")
    return lambda: operator_source.__wrapped__(replace(toy, operator_tables=(str(path),)), "vllm")


def times(source: OperatorSource, kind: OperatorKind, **dims: list[int]) -> tuple[list[float], list[int]]:
    arrays = {name: np.array(values) for name, values in dims.items()}
    found = source.times(kind, "bf16", arrays)
    return [round(1e3 * each, 6) for each in found.latency_ms.tolist()], found.provenance.tolist()


def test_small_kernels_are_straight_between_measurements(source: Callable[[], OperatorSource]) -> None:
    found, label = times(
        source(), OperatorKind.ELEMENTWISE, traffic_bytes=[500, 1000, 2000, 3000, 4000, 8000]
    )
    # A smaller transfer can be padded: 1,000 bytes take no longer than 2,000. Beyond 4,000 the size decides.
    assert found == [2.0, 2.0, 2.0, 4.0, 6.0, 12.0]
    names = [Provenance(each).label[0] for each in label]
    assert names == ["e", "m", "m", "i", "m", "e"]


def test_messages_leave_the_domain_by_the_roofline(
    source: Callable[[], OperatorSource], toy: Accelerator
) -> None:
    found, label = times(source(), OperatorKind.SEND_RECV, message_bytes=[2000, 2000], stride=[1, 8])
    assert found[0] == 15.0
    assert label == [Provenance.INTERPOLATED, Provenance.ROOFLINE]
    bare = operator_source.__wrapped__(toy, "vllm")
    roofline, _ = times(bare, OperatorKind.SEND_RECV, message_bytes=[2000], stride=[8])
    # One way over the network: half of the 60 us of an all-reduce.
    assert found[1] == roofline[0] > 30


def test_the_file_is_a_source_of_the_plan(source: Callable[[], OperatorSource]) -> None:
    own = source()
    assert own.table_sources() == ()
    times(own, OperatorKind.ELEMENTWISE, traffic_bytes=[1000])
    (used,) = own.table_sources()
    assert (used.family, used.package) == ("elementwise", "own table")


def test_other_data_types_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("operator,dtype,traffic_bytes,latency_us\nelementwise,fp8,10,1\n", encoding="utf-8")
    (issue,) = read_own_table(path, "toy").rejected
    assert issue.message == "elementwise moves bf16 activations"
