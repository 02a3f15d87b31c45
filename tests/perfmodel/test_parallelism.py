import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from fleetplan.perfmodel.parallelism import Configuration, Layouts, Parallelism, parse_parallelism


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("TP1", Parallelism()),
        ("TP8", Parallelism(tp=8, ffn_tp=8)),
        ("PP8", Parallelism(pp=8)),
        ("PP4-TP2", Parallelism(pp=4, tp=2, ffn_tp=2)),
        ("PP2-DP2TP4-TP8", Parallelism(pp=2, tp=4, dp=2, ffn_tp=8)),
        ("TP8DP2-TP8EP2", Parallelism(tp=8, dp=2, ffn_tp=8, ep=2)),
        ("TP4DP4-TP4EP4", Parallelism(tp=4, dp=4, ffn_tp=4, ep=4)),
        ("TP16-TP8EP2", Parallelism(tp=16, ffn_tp=8, ep=2)),
        ("DP8-EP8", Parallelism(dp=8, ep=8)),
        ("tp8dp2", Parallelism(tp=8, dp=2, ffn_tp=16)),
        ("PP2-TP4-TP4", Parallelism(pp=2, tp=4, ffn_tp=4)),
    ],
)
def test_reads_the_notation_of_the_paper(label: str, expected: Parallelism) -> None:
    assert parse_parallelism(label) == expected


def test_prints_the_canonical_order() -> None:
    assert parse_parallelism("PP2-DP2TP4-TP8").label == "PP2-TP4DP2-TP8"
    assert parse_parallelism("DP8-EP8").label == "DP8-EP8"
    assert parse_parallelism("PP2-TP4-TP4").label == "PP2-TP4"


powers = st.sampled_from([1, 2, 4, 8, 16])


@given(powers, powers, powers, powers, powers)
@examples(100, 25, 100)
def test_every_layout_survives_printing_and_reading(pp: int, tp: int, dp: int, cp: int, ep: int) -> None:
    if (tp * dp * cp) % ep:
        return
    layout = Parallelism(pp=pp, tp=tp, dp=dp, cp=cp, ffn_tp=tp * dp * cp // ep, ep=ep)
    assert parse_parallelism(layout.label) == layout


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("", "is not a parallelism such as"),
        ("TP", "is not a parallelism such as"),
        ("TP0", "is not a parallelism such as"),
        ("TP8X", "is not a parallelism such as"),
        ("TP2TP4", "names a part twice"),
        ("TP4-TP8", "attention takes 4 accelerators a stage .* but the feed-forward part 8"),
        ("TP4-DP4", "DP has no place in the feed-forward group, which takes EP, TP"),
        ("TP4EP2", "EP has no place in the attention group"),
        ("PP2-TP4-TP4-TP4", "more groups than"),
    ],
)
def test_refuses_other_labels(label: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_parallelism(label)


def test_accelerators_of_stage_and_replica() -> None:
    layout = parse_parallelism("PP2-DP2TP4-TP8")
    assert (layout.accelerators_per_stage, layout.accelerators) == (8, 16)
    columns = Layouts.of([layout, Parallelism()])
    assert columns.accelerators.tolist() == [16, 1]
    assert columns.take(columns.pp.argsort()).pp.tolist() == [1, 2]


def test_context_parallelism_takes_accelerators() -> None:
    layout = parse_parallelism("PP2-TP2DP2CP4-TP4EP4")
    assert layout.label == "PP2-TP2DP2CP4-TP4EP4"
    columns = Layouts.of([layout, Parallelism()])
    assert columns.accelerators.tolist() == [32, 1]
    assert columns.token_ranks.tolist() == [8, 1]
    assert Layouts.concatenated([columns, columns]).cp.tolist() == [4, 1, 4, 1]
    assert columns.reshaped((2, 1, 1)).cp.shape == (2, 1, 1)


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("TP4 b8", Configuration(parse_parallelism("TP4"), 8)),
        ("small/PP2-TP2 b16@20ms", Configuration(parse_parallelism("PP2-TP2"), 16, "small", 20.0)),
        ("DP4-EP4", Configuration(parse_parallelism("DP4-EP4"))),
        ("a b/c@d/TP8@0.5ms", Configuration(parse_parallelism("TP8"), None, "a b/c@d", 0.5)),
    ],
)
def test_a_configuration_is_read_back(label: str, expected: Configuration) -> None:
    assert Configuration.parse(label) == expected
    assert expected.label == label


@given(
    st.sampled_from(["TP1", "PP4-TP2", "TP2DP4-TP8", "TP8CP4-TP8EP4"]),
    st.none() | st.integers(1, 10_000),
    st.text(alphabet="ab@ /.0", max_size=8).filter(lambda name: not name.startswith("/")),
    st.none() | st.floats(1e-3, 1e6),
)
@examples(100, 25, 100)
def test_every_configuration_has_a_label_of_its_own(
    layout: str, batch: int | None, variant: str, reach_ms: float | None
) -> None:
    written = Configuration(parse_parallelism(layout), batch, variant, reach_ms)
    read = Configuration.parse(written.label)
    assert read.label == written.label
    assert (read.layout, read.batch, read.variant) == (written.layout, batch, variant)


@pytest.mark.parametrize("label", ["", "b8", "TP4 b", "TP4 8", "TP4 b8@20", "TP4@ms", "medium"])
def test_other_names_are_no_configurations(label: str) -> None:
    with pytest.raises(ValueError, match="is not a"):
        Configuration.parse(label)
