"""Files that break readers: what never ends, what is too large or deep, and what is no such file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tests.hostile.readers import Reader

DEEP = 200_000
"""Levels of nesting; Python's own limit is some hundred."""

DIGITS = "9" * 5_000

HUGE_BYTES = 3 * 2**30
"""Length of a file without content; no reader takes so much."""

LONG_FIELD = 10_000_000

NUMBERS = {
    "nan": "NaN",
    "infinity": "Infinity",
    "minus": "-1",
    "digits": DIGITS,
    "word": '"many"',
    "two": "[1, 2]",
}
"""Values in the place of a number, as JSON has them."""

IN_YAML = {"nan": ".nan", "infinity": ".inf"}

Writer = Callable[[Path, Reader], None]


def _raw(content: bytes) -> Writer:
    return lambda path, _: _write(path, content)


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _sparse(path: Path, _: Reader) -> None:
    with path.open("wb") as file:
        file.truncate(HUGE_BYTES)


def _deep(path: Path, reader: Reader) -> None:
    nested = {"yaml": "a: " + "[" * DEEP, "json": '{"a":' * DEEP, "csv": '"' * DEEP + ","}
    path.write_text(nested[reader.form], encoding="utf-8")


def _aliases(path: Path, _: Reader) -> None:
    """Return thirty lines of YAML aliases that expand to a billion values."""
    lines = ["a0: &a0 [x, x, x, x]"]
    lines += [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}, *a{n - 1}]" for n in range(1, 30)]
    path.write_text("\n".join(lines), encoding="utf-8")


def _value(name: str) -> Writer:
    def write(path: Path, reader: Reader) -> None:
        value = NUMBERS[name]
        if reader.form == "yaml":
            value = IN_YAML.get(name, value)
        elif reader.form == "csv":
            value = value.strip('"') if name != "two" else f'"{value}"'
        path.write_text(reader.good.replace("VALUE", value), encoding="utf-8")

    return write


def _long_field(path: Path, reader: Reader) -> None:
    path.write_text(reader.good.replace("VALUE", "1" + "x" * LONG_FIELD), encoding="utf-8")


INPUTS: dict[str, Writer] = {
    "pipe": lambda path, _: os.mkfifo(path),
    "device": lambda path, _: path.symlink_to("/dev/zero"),
    "folder": lambda path, _: path.mkdir(),
    "absent": lambda path, _: None,
    "loop of links": lambda path, _: path.symlink_to(path),
    "empty": _raw(b""),
    "blank": _raw(b"\n\n \n"),
    "huge": _sparse,
    "deep": _deep,
    "NUL": _raw(b"version: 1\n\0\n"),
    "NULs": _raw(bytes(4096)),
    "not UTF-8": _raw(b"\xff\xfe\x80,\xc3\x28\n\x80\x81\n"),
    "picture": _raw(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40),
    "scalar": _raw(b"3\n"),
    "list": _raw(b"[1, 2, 3]\n"),
    "text": _raw(b'"fleet"\n'),
    "unreadable": _raw(b"version: 1\n"),
    "aliases": _aliases,
    "long field": _long_field,
    **{name: _value(name) for name in NUMBERS},
}

GOOD_WITHOUT_VALUE = frozenset({"long field", *NUMBERS})
"""Inputs that are made from a good file."""


def inputs_of(reader: Reader) -> list[str]:
    """Return the names of the inputs that a reader can be given."""
    names = [name for name in INPUTS if reader.good or name not in GOOD_WITHOUT_VALUE]
    return [name for name in names if name != "aliases" or reader.form == "yaml"]
