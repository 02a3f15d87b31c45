"""Structure of the code: its measurement, and the goals of the packages."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest
from benchmarks.structure import GOALS, PackageStructure, draw, structure_of

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "structure.svg"
SECOND_FORMULATION = ROOT / "tests" / "oracles" / "independent"
"""Written from the documentation alone: it names pools, services and periods once more."""


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("fleetplan", cache_dir=None)


def graph_of(*arrows: tuple[str, str]) -> grimp.ImportGraph:
    """The graph of modules of fleetplan that import each other so, with the packages above them."""
    graph = grimp.ImportGraph()
    for arrow in arrows:
        for name in arrow:
            parts = name.split(".")
            for length in range(1, len(parts) + 1):
                graph.add_module(".".join(["fleetplan", *parts[:length]]))
        graph.add_import(importer=f"fleetplan.{arrow[0]}", imported=f"fleetplan.{arrow[1]}")
    return graph


def imports(*arrows: str) -> PackageStructure:
    """The structure of `house`, from "house.roof > house.walls"."""
    pairs = [arrow.split(" > ") for arrow in arrows]
    return structure_of(graph_of(*((importer, imported) for importer, imported in pairs)), "house")


def test_modules_of_a_room_are_one_room_and_imports_within_it_no_arrow() -> None:
    house = imports("house.roof.tiles > house.walls", "house.roof.tiles > house.roof.beams")
    assert house.rooms == ("roof", "walls")
    assert house.loose == {"walls"}
    assert house.arrows == {("roof", "walls")}
    assert house.floors == 2
    assert not house.up


def test_floors_are_the_longest_chain_and_what_it_implies_is_not_direct() -> None:
    house = imports("house.c > house.b", "house.b > house.a", "house.c > house.a", "house.d > house.a")
    assert house.floor == {"a": 0, "b": 1, "c": 2, "d": 1}
    assert house.direct == {("c", "b"), ("b", "a"), ("d", "a")}


def test_a_circle_is_one_floor_and_its_arrows_lead_up() -> None:
    house = imports("house.c > house.b", "house.b > house.c", "house.b > house.a", "house.d > house.c")
    assert house.floor == {"a": 0, "b": 1, "c": 1, "d": 2}
    assert house.up == {("b", "c"), ("c", "b")}


def test_entrances_are_what_other_packages_import() -> None:
    house = imports("garden.gate > house.door", "house.hall > house.stairs")
    assert house.entrances == {"fleetplan.house.door"}
    assert house.rooms == ("door", "hall", "stairs")


@pytest.mark.parametrize("package", GOALS)
def test_the_goals_are_met(graph: grimp.ImportGraph, package: str) -> None:
    assert structure_of(graph, package).missed() == []


def test_a_missed_goal_is_said() -> None:
    many = [("perfmodel.top", f"perfmodel.module_{number}") for number in range(11)]
    assert structure_of(graph_of(*many), "perfmodel").missed() == ["perfmodel: 12 loose modules, at most 10"]


def classes_of_several_meanings(*folders: Path) -> dict[str, list[str]]:
    """Return the files of every class name that more than one file defines."""
    texts = {
        file: (file.relative_to(folder).as_posix(), file.read_text("utf-8"))
        for folder in folders
        for file in folder.rglob("*.py")
        if not file.is_relative_to(SECOND_FORMULATION)
    }
    # A module's own classes begin lines. To parse every file takes seconds: those that may share one are.
    begun = {file: set(re.findall(r"^class (\w+)", text, re.MULTILINE)) for file, (_, text) in texts.items()}
    shared = {
        name for name, count in Counter(name for own in begun.values() for name in own).items() if count > 1
    }
    files: dict[str, set[Path]] = defaultdict(set)
    for file, own in begun.items():
        for node in ast.parse(texts[file][1]).body if own & shared else ():
            if isinstance(node, ast.ClassDef):
                files[node.name].add(file)
    return {name: sorted(texts[file][0] for file in own) for name, own in files.items() if len(own) > 1}


def test_a_class_name_means_one_thing() -> None:
    folders = ("benchmarks", "fleet", "perfmodel", "planner", "scenarios", "tests")
    assert classes_of_several_meanings(*(ROOT / folder for folder in folders)) == {}


def test_a_class_name_of_two_files_is_found(tmp_path: Path) -> None:
    for name in ("roof.py", "floor.py"):
        (tmp_path / name).write_text("class Beam:\n    pass\n", "utf-8")
    assert classes_of_several_meanings(tmp_path) == {"Beam": ["floor.py", "roof.py"]}


def test_a_class_name_of_files_of_one_name_is_found(tmp_path: Path) -> None:
    folders = (tmp_path / "shed", tmp_path / "house")
    for folder in folders:
        folder.mkdir()
        (folder / "roof.py").write_text("class Beam:\n    pass\n", "utf-8")
    assert classes_of_several_meanings(*folders) == {"Beam": ["roof.py", "roof.py"]}


def names_that_nobody_uses(*folders: Path) -> dict[str, str]:
    """Return the file of every name that a module defines and no line of these folders has again."""
    texts = {file: file.read_text("utf-8") for folder in folders for file in sorted(folder.rglob("*.py"))}
    written = Counter(word for text in texts.values() for word in re.findall(r"\w+", text))
    # What a module defines begins a line. To parse every file takes seconds.
    begun = {file: re.findall(r"^(?:def |class )?(\w+)", text, re.MULTILINE) for file, text in texts.items()}
    return {
        name: file.name
        for file, words in begun.items()
        if any(written[word] == 1 for word in words)
        for name in defined_names(ast.parse(texts[file]))
        if written[name] == 1
    }


def defined_names(module: ast.Module) -> Iterator[str]:
    """Yield the names that a module defines, except those that a decorator registers."""
    for node in module.body:
        match node:
            case ast.FunctionDef(name=name, decorator_list=[]) | ast.ClassDef(name=name, decorator_list=[]):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                yield name


def test_no_module_defines_what_nobody_uses() -> None:
    folders = ("benchmarks", "fleet", "perfmodel", "planner", "scenarios")
    unused = names_that_nobody_uses(*(ROOT / folder for folder in folders))
    # Python itself asks for these.
    assert {name for name in unused if not name.startswith("__")} == set()


def test_a_name_that_nobody_uses_is_found(tmp_path: Path) -> None:
    (tmp_path / "roof.py").write_text("SLOPE = 0.5\nTILES: int = 3\n\ndef leak() -> int: ...\n", "utf-8")
    (tmp_path / "floor.py").write_text("from roof import TILES\n\n@app.command\ndef walk(): ...\n", "utf-8")
    assert names_that_nobody_uses(tmp_path) == {"SLOPE": "roof.py", "leak": "roof.py"}


def test_the_picture_shows_every_room_and_two_runs_draw_the_same(
    graph: grimp.ImportGraph, tmp_path: Path
) -> None:
    structures = [structure_of(graph, package) for package in GOALS]
    for name in ("first.svg", "second.svg"):
        draw(structures, tmp_path / name)
    drawn = (tmp_path / "first.svg").read_text("utf-8")
    assert drawn == (tmp_path / "second.svg").read_text("utf-8")
    for picture in (drawn, PICTURE.read_text("utf-8")):
        assert all(f">{room}</text>" in picture for each in structures for room in each.rooms)
