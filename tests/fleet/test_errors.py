"""Wording of errors."""

import pytest

from fleetplan.fleet.errors import InputError, Issue, names_hint, nearest


def test_an_issue_is_one_line() -> None:
    issue = Issue("a.yaml", 3, 7, "pools.p.hosts", "must be a number, not 'x'", "allowed: numbers")
    assert str(issue) == "a.yaml:3:7: pools.p.hosts: must be a number, not 'x'; allowed: numbers"
    assert str(Issue("a.yaml", 0, 0, "", "there is no file a.yaml")) == "a.yaml: there is no file a.yaml"


def test_an_error_is_a_line_an_issue() -> None:
    issues = [Issue("a.yaml", 1, 1, "x", "one"), Issue("a.yaml", 2, 1, "y", "two")]
    assert str(InputError(issues)) == "a.yaml:1:1: x: one\na.yaml:2:1: y: two"
    with pytest.raises(ValueError, match="at least one"):
        InputError([])


@pytest.mark.parametrize(
    ("given", "meant"),
    [("h200_sxm", "H200-SXM"), ("H200", "H200-SXM"), ("b200-smx", "B200-SXM"), ("zebra", None), ("", None)],
)
def test_the_nearest_name(given: str, meant: str | None) -> None:
    assert nearest(given, ["H100-SXM", "H200-SXM", "B200-SXM"]) == meant


def test_a_long_list_of_names_is_not_written_out() -> None:
    names = [f"name-{i}" for i in range(40)]
    assert names_hint("nam-7", names) == "allowed: one of 40 names; did you mean 'name-7'?"
    assert names_hint("x", []) == "allowed: none are defined"
