"""Input files are read completely or refused with a message; no read waits or grows without limit."""

import json
import os
from pathlib import Path

import pytest

from fleetplan.fleet.input_files import CsvError, NotTextError, csv_rows, parse_json, read_bytes, read_text


def refusal(path: Path, most_bytes: int = 1000) -> str:
    with pytest.raises(OSError, match=r".") as caught:
        read_bytes(path, most_bytes)
    return str(caught.value.strerror)


def test_a_pipe_and_a_device_are_refused_without_waiting(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert refusal(pipe) == "it is a pipe, not a file; save its content as a file first"
    assert refusal(Path("/dev/zero")) == "it is a device, not a file"
    assert refusal(tmp_path) == "it is a folder"
    assert refusal(tmp_path / "a\0b") == "its name contains a NUL character"


def test_a_large_file_is_refused_unread_and_a_file_of_the_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 1000)
    assert read_bytes(path, 1000) == b"x" * 1000
    assert refusal(path, 999) == "it is larger than 0 MiB"
    # A file of the kernel says that it is empty.
    assert read_bytes(Path("/proc/self/status"), 10**6)
    os.truncate(path, 2**36)
    assert refusal(path, 2**21) == "it is larger than 2 MiB"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("a,b\n".encode("utf-16"), "it is UTF-16 text; save it as UTF-8"),
        (b"\xfe\xff\0a", "it is UTF-16 text; save it as UTF-8"),
        (b"caf\xe9", "it is not UTF-8 text, with the byte 0xe9; save it as UTF-8"),
    ],
)
def test_text_of_another_encoding_is_told(data: bytes, said: str, tmp_path: Path) -> None:
    """A file in another encoding gives a message without the names of codecs."""
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(NotTextError) as caught:
        read_text(path)
    assert str(caught.value) == said


def test_text_loses_its_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\xef\xbb\xbfzw\xc3\xb6lf")
    assert read_text(path) == "zwölf"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a": ' * 100_000, "nested too deeply"),
        (f'{{"a": {"1" * 5000}}}', "11111111111111111111... has more than 20 digits"),
        ('{"a": 1e999}', "1e999 is not a finite number"),
        ('{"a": NaN}', "NaN is not a finite number"),
        ('{"a": -Infinity}', "-Infinity is not a finite number"),
        ('{"a": }', "Expecting value"),
    ],
)
def test_json_that_cannot_be_held_is_one_error_with_its_place(text: str, reason: str) -> None:
    with pytest.raises(json.JSONDecodeError) as caught:
        parse_json(text)
    assert caught.value.msg == reason
    assert caught.value.lineno == 1


def test_json_with_the_longest_hashes_is_read_exactly() -> None:
    assert parse_json('{"hash_ids": [18446744073709551615, -1], "x": 1.5}') == {
        "hash_ids": [2**64 - 1, -1],
        "x": 1.5,
    }


def test_rows_of_csv_know_their_line_and_a_field_without_end_is_refused() -> None:
    assert list(csv_rows(["a,b", '"1\n', '2",3'])) == [(1, ["a", "b"]), (3, ["1\n2", "3"])]
    # What Excel reads its divider from is no header; below it, such a line is a row.
    for first in ("sep=,", '"sep=,"', "sep=;", "SEP=|"):
        assert list(csv_rows([first, "a,b", "sep=,"])) == [(2, ["a", "b"]), (3, ["sep=", ""])]
    with pytest.raises(CsvError) as caught:
        list(csv_rows(["a,b", "x" * 200_000]))
    assert (caught.value.line, caught.value.reason) == (2, "field larger than field limit (131072)")
