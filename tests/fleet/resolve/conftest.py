"""Fleet files in a folder of a test's own."""

from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make messages hold the file's bare name."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
