"""Strict YAML: what is read, what is refused, and how files are put together."""

import os
import re
from pathlib import Path

import pytest

from fleetplan.fleet.document import read_document, read_fragment
from fleetplan.fleet.document.source import MAX_BYTES
from fleetplan.fleet.errors import InputError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(text: str | bytes, name: str = "a.yaml") -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
    return path


def message_of(path: Path | str) -> str:
    with pytest.raises(InputError) as caught:
        read_document(path)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("off", "off"),
        ("True", "True"),
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("12:30", "12:30"),
        ("1:30:00", "1:30:00"),
        ("2027-01-01", "2027-01-01"),
        ("2027Q1", "2027Q1"),
        ("1_000", "1_000"),
        ("0x10", "0x10"),
        ("1.2.3", "1.2.3"),
        ("'12'", "12"),
        ('".nan"', ".nan"),
    ],
)
def test_only_what_looks_like_it_is_a_number_or_a_boolean(text: str, expected: object) -> None:
    value = read_fragment(text, "--set x").plain()
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12", 12),
        ("-3", -3),
        ("010", 10),
        ("1e3", 1000.0),
        ("5e6", 5e6),
        (".5", 0.5),
        ("1.", 1.0),
        ("2.5E-1", 0.25),
    ],
)
def test_numbers(text: str, expected: float) -> None:
    value = read_fragment(text, "--set x").plain()
    assert value == expected
    assert type(value) is type(expected)


def test_merge_keys_and_anchors() -> None:
    path = written("base: &b {x: 1, y: 2}\nmine: {<<: *b, y: 3}\nboth: {<<: [*b, {z: 4}]}\n")
    assert read_document(path).root.plain() == {
        "base": {"x": 1, "y": 2},
        "mine": {"y": 3, "x": 1},
        "both": {"x": 1, "y": 2, "z": 4},
    }


def test_places_point_at_keys_and_values() -> None:
    document = read_document(written("a:\n  b: [1,\n      2]\n"))
    value, key = document.place(("a", "b", 1)), document.key_place(("a", "b"))
    assert (value.line, value.column) == (3, 7)
    assert (key.line, key.column) == (2, 3)
    missing = document.place(("a", "c"))
    assert (missing.line, missing.column) == (2, 3)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "a.yaml:1:1: the file is empty; a fleet file starts with `version: 1`"),
        (b"# only a comment\n", "a.yaml:1:1: the file is empty; a fleet file starts with `version: 1`"),
        (b"\n---\n", "a.yaml:1:1: the file is empty; a fleet file starts with `version: 1`"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "a.yaml:3:1: this is a binary file, not YAML text"),
        ("name: a\n".encode("utf-16"), "a.yaml:1:1: this is UTF-16 text; save the file as UTF-8"),
        ("name: a\n".encode("utf-16-le"), "a.yaml:1:1: this is UTF-16 text; save the file as UTF-8"),
        ("name: a\n".encode("utf-32"), "a.yaml:1:1: this is UTF-32 text; save the file as UTF-8"),
        (
            b"name: caf\xe9\n",
            "a.yaml:1:10: not UTF-8 text: byte 0xe9 cannot be read; save the file as UTF-8",
        ),
        (b"- 1\n- 2\n", "a.yaml:1:1: must be a mapping of keys to values, not a list"),
        (b"just text\n", "a.yaml:1:1: must be a mapping of keys to values, not 'just text'"),
        (b"x: 12345678901234567890\n", "a.yaml:1:4: x: 12345678901234567890 has more than 15 digits"),
    ],
    ids=[
        "empty",
        "comment",
        "empty document",
        "binary",
        "UTF-16",
        "no mark",
        "UTF-32",
        "latin-1",
        "list",
        "text",
        "digits",
    ],
)
def test_files_that_are_no_fleet(data: bytes, expected: str) -> None:
    assert message_of(written(data)) == expected


def test_control_characters_are_refused() -> None:
    assert message_of(written(b"name: a\x07b\n")).startswith("a.yaml:1:1: not valid YAML: ")


def test_a_byte_order_mark_is_fine() -> None:
    assert read_document(written(b"\xef\xbb\xbfname: a\n")).root.plain() == {"name": "a"}


def test_missing_files_and_folders() -> None:
    Path("folder").mkdir()
    assert message_of("nowhere.yaml") == "nowhere.yaml:1:1: there is no file nowhere.yaml"
    assert message_of("folder") == "folder:1:1: folder is a folder, not a file"


def test_a_file_too_large_to_be_a_fleet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fleetplan.fleet.document.source.MAX_BYTES", 10)
    assert MAX_BYTES > 1024**2
    assert "larger than" in message_of(written("name: a long name\n"))


def test_an_alias_bomb_is_refused_quickly() -> None:
    lines = ["l0: &l0 [a, a, a, a, a, a, a, a, a, a]"]
    lines += [f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 10)}]" for i in range(1, 30)]
    assert "values when every alias is written out" in message_of(written("\n".join(lines)))


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_deep_nesting_is_refused(opening: str) -> None:
    assert "nested deeper than 64 levels" in message_of(written("x:\n  " + opening * 5000))


def test_imports_are_merged_and_the_importing_file_wins() -> None:
    written(
        "regions: {eu: {pue: 1.1, power_kw: 5}}\npools: [{name: p, hosts: 1}, {name: q, hosts: 2}]\n",
        "sub/b.yaml",
    )
    written("name: c\nlist: [1, 2]\n", "c.yaml")
    path = written(
        "imports: [sub/b.yaml, c.yaml]\nregions: {eu: {pue: 1.2}}\n"
        "pools: [{name: q, hosts: 9}, {name: r, hosts: 3}]\nlist: [3]\n"
    )
    document = read_document(path)
    assert document.root.plain() == {
        "regions": {"eu": {"pue": 1.2, "power_kw": 5}},
        "pools": [{"name": "p", "hosts": 1}, {"name": "q", "hosts": 9}, {"name": "r", "hosts": 3}],
        "name": "c",
        "list": [3],
    }
    assert document.place(("regions", "eu", "power_kw")).file == "sub/b.yaml"
    assert document.place(("pools", 1, "hosts")).file == "a.yaml"
    assert set(document.hashes) == {"a.yaml", "sub/b.yaml", "c.yaml"}


def test_a_file_may_be_imported_by_two_others() -> None:
    written("x: 1\n", "d.yaml")
    written("imports: [d.yaml]\ny: 2\n", "b.yaml")
    written("imports: [d.yaml]\nz: 3\n", "c.yaml")
    document = read_document(written("imports: [b.yaml, c.yaml]\n"))
    assert document.root.plain() == {"x": 1, "y": 2, "z": 3}


def test_cyclic_imports_name_the_cycle() -> None:
    written("imports: [c.yaml]\n", "b.yaml")
    written("imports:\n  - a.yaml\n", "c.yaml")
    assert message_of(written("imports: [b.yaml]\n")) == (
        "c.yaml:2:5: imports: files import each other: a.yaml -> b.yaml -> c.yaml -> a.yaml; "
        "remove one of these imports"
    )
    assert "s.yaml -> s.yaml" in message_of(written("imports: [s.yaml]\n", "s.yaml"))


def test_a_missing_import_is_missed_where_it_is_named() -> None:
    assert message_of(written("x: 1\nimports: [gone.yaml]\n")) == "a.yaml:2:11: there is no file gone.yaml"


def test_imports_must_be_a_list_of_names() -> None:
    assert message_of(written("imports: b.yaml\n")) == (
        "a.yaml:1:10: imports: must be a list of file names, not 'b.yaml'; such as [prices.yaml]"
    )


def test_mistakes_of_all_files_come_at_once() -> None:
    written("x: 1\nx: 2\n", "b.yaml")
    written("y: .inf\n", "c.yaml")
    message = message_of(written("imports: [b.yaml, c.yaml, d.yaml]\n"))
    assert [line.split(" ")[0] for line in message.split("\n")] == [
        "b.yaml:2:1:",
        "c.yaml:1:4:",
        "a.yaml:1:27:",
    ]


def test_fragments_carry_their_label() -> None:
    node = read_fragment("{a: [1, 2]}", "--set x={a: [1, 2]}")
    assert node.plain() == {"a": [1, 2]}
    assert node.place.file == "--set x={a: [1, 2]}"
    with pytest.raises(InputError, match="not valid YAML"):
        read_fragment("[1, 2", "--set x")


@pytest.mark.parametrize("key", ["~", "null", "?\n  ", "? null\n  "])
def test_a_key_of_nothing_is_refused_where_it_stands(key: str) -> None:
    message = message_of(written(f"version: 1\nx:\n  {key}: 3\n"))
    assert re.fullmatch(
        r"a\.yaml:3:\d+: x: a key must be text, not nothing; quote it if it is a name", message
    )


def test_a_quoted_key_that_looks_like_nothing_is_a_key() -> None:
    assert read_document(written('x: {"~": 3}\n')).root.plain() == {"x": {"~": 3}}


@pytest.mark.parametrize("escape", [r"\e", r"\0", r"\x7f", r"\x9b", r"\r", r"\u202e"])
@pytest.mark.parametrize("text", ['name: "a{}"\n', '"a{}": 1\n'])
def test_characters_that_steer_a_terminal_are_refused_where_they_stand(text: str, escape: str) -> None:
    column = text.index('"') + 1
    assert f"a.yaml:1:{column}:" in message_of(written(text.replace("{}", escape)))
    assert "is not allowed; it is a control character; remove it" in message_of(Path("a.yaml"))


def test_a_pipe_or_device_is_refused_without_waiting() -> None:
    os.mkfifo("pipe.yaml")
    assert message_of("pipe.yaml").startswith("pipe.yaml:1:1: pipe.yaml cannot be read: it is a pipe")
    assert message_of("/dev/zero") == "/dev/zero:1:1: /dev/zero cannot be read: it is a device, not a file"
    written("imports: [pipe.yaml]\n")
    assert message_of("a.yaml").startswith("a.yaml:1:11: pipe.yaml cannot be read: it is a pipe")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (
            '{"format_version": "1.6", "fleet": "x", "status": "optimal", "placements": []}',
            "the plan.json of",
        ),
        ('{"model_type": "llama", "hidden_size": 4096}', "the config.json of a model"),
        ('{"$defs": {}, "properties": {}}', "a JSON Schema"),
    ],
)
def test_another_file_of_ours_is_named_in_one_sentence(text: str, what: str) -> None:
    message = message_of(written(text, "plan.json"))
    assert message.startswith(f"plan.json:1:1: is {what}")
    assert ", not a fleet file; " in message
    assert "\n" not in message
