"""Fixtures shared by tests of questions."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.planner.questions.swept import swept


@pytest.fixture(scope="session")
def whole_sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a sweep of the whole grid, for those who look at it or copy it."""
    folder = tmp_path_factory.mktemp("whole")
    swept(folder, drawn=True)
    return folder
