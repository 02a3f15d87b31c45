"""The cache of template code depends only on the inputs of that code."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from jinja2 import nodes

from fleetplan.fleet.files import SWITCH
from fleetplan.planner.report.html import templates

ROOMS = ("fleetplan.planner.report.html", "fleetplan.planner.commands.page")
TEXTS = {
    f"{room}/{each.name}": each.read_text(encoding="utf-8")
    for room in ROOMS
    for each in files(room).iterdir()
    if each.name.endswith(".j2")
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache folder and a room of the test's own, and a process that has made nothing yet."""
    monkeypatch.setattr(templates, "files", Path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    templates.template.cache_clear()
    yield tmp_path / "cache" / "fleetplan" / "templates"
    templates.template.cache_clear()


def rendered(where: Path, text: str = "{{ usd | money }} of {{ name }}") -> str:
    """A template of this text, as a process that begins renders it."""
    (where / "own.j2").write_text(text, encoding="utf-8")
    templates.template.cache_clear()
    return templates.template(str(where), "own.j2").render(usd=1234.0, name="<b>")


def never(*_: object) -> None:
    raise AssertionError("code was made")


def test_code_is_made_once_and_again_for_another_text(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = rendered(tmp_path)
    assert first == "$1.234\u00a0k of &lt;b&gt;"
    with monkeypatch.context() as patched:
        patched.setattr(templates.Environment, "compile", never)
        assert rendered(tmp_path) == first
        with pytest.raises(AssertionError, match="code was made"):
            rendered(tmp_path, "another")
        patched.setenv(SWITCH, "off")
        with pytest.raises(AssertionError, match="code was made"):
            rendered(tmp_path)
    assert rendered(tmp_path, "another") == "another"
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize("damage", [b"", b"not what was written", None], ids=("empty", "other", "cut"))
def test_damaged_code_is_made_again(folder: Path, tmp_path: Path, damage: bytes | None) -> None:
    first = rendered(tmp_path)
    (kept,) = folder.iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(whole[:-9] if damage is None else damage)
    assert rendered(tmp_path) == first
    assert kept.read_bytes() == whole


def test_code_under_the_name_of_another_template_is_made_again(folder: Path, tmp_path: Path) -> None:
    first, second = rendered(tmp_path), rendered(tmp_path, "another")
    one, other = folder.iterdir()
    contents = one.read_bytes(), other.read_bytes()
    one.write_bytes(contents[1])
    other.write_bytes(contents[0])
    assert rendered(tmp_path, "another") == second
    assert rendered(tmp_path) == first


def test_a_folder_that_cannot_be_written_is_no_error(folder: Path, tmp_path: Path) -> None:
    folder.parent.mkdir(parents=True)
    folder.write_text("no folder", encoding="utf-8")
    assert rendered(tmp_path).endswith("&lt;b&gt;")


@pytest.mark.parametrize("name", TEXTS)
def test_no_filter_of_ours_is_of_a_constant(name: str) -> None:
    """Jinja would compute it when it makes code, in the currency of that moment."""
    own = templates._environment()
    ours = {key for key, kind in own.filters.items() if (kind.__module__ or "").startswith("fleetplan.")}
    for each in own.parse(TEXTS[name]).find_all(nodes.Filter):
        if each.name in ours:
            with pytest.raises(nodes.Impossible):
                each.as_const()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("held (`techniques.x` gives <both>)", "held (<code>techniques.x</code> gives &lt;both&gt;)"),
        ("`<b>`", "<code>&lt;b&gt;</code>"),
        ("a ` that is not closed", "a ` that is not closed"),
        ("none", "none"),
    ],
)
def test_what_a_message_has_between_backquotes_is_code(folder: Path, text: str, shown: str) -> None:
    where = folder.parent
    where.mkdir(parents=True)
    (where / "own.j2").write_text("{{ text | coded }}", encoding="utf-8")
    assert templates.template(str(where), "own.j2").render(text=text) == shown
