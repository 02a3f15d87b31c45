"""The notebooks: committed with their outputs, and run from top to bottom in the slow stage."""

from __future__ import annotations

import ast
import importlib
import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


def test_there_are_three() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["calibrate", "first-plan", "heterogeneous-tco"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_holds_what_it_printed_and_no_error(path: Path) -> None:
    book = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert outputs
    assert all(output["output_type"] in {"execute_result", "display_data"} for output in outputs)
    # Nothing of the machine that it ran on, and small enough to read in a review.
    assert "/home/" not in path.read_text(encoding="utf-8")
    assert path.stat().st_size < 100_000


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_a_notebook_imports_of_this_package_is_there(path: Path) -> None:
    book = json.loads(path.read_text(encoding="utf-8"))
    code = ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]
    imports = [
        node for cell in code for node in ast.walk(ast.parse(cell)) if isinstance(node, ast.ImportFrom)
    ]
    for node in imports:
        if node.module is not None and node.module.startswith("fleetplan"):
            module = importlib.import_module(node.module)
            assert [each.name for each in node.names if not hasattr(module, each.name)] == []


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path) -> None:
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    book = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(path.parent)}}
    # A cell that fails raises here.
    ran = nbclient.NotebookClient(book, timeout=300, kernel_name="python3", resources=resources).execute()
    code = [cell for cell in ran["cells"] if cell["cell_type"] == "code"]
    assert all(cell["execution_count"] for cell in code)
    assert any(cell["outputs"] for cell in code)
