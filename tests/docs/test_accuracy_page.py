"""The accuracy page consists of its prose and of tables that the benchmarks wrote."""

from __future__ import annotations

from benchmarks.accuracy_page import NOTES, PAGE, page_text


def test_the_page_is_generated_from_its_prose_and_its_tables() -> None:
    assert PAGE.read_text("utf-8") == page_text()


def test_the_prose_names_tables_and_holds_none() -> None:
    prose = NOTES.read_text("utf-8")
    assert prose.count("<!-- table: ") > 10
    assert "<!--" not in page_text()
