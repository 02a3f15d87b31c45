"""Read input files: ordinary files of bounded size, and nothing endless.

All readers of this project use these functions, so that a pipe, a device, an endless file or a name with a
NUL character causes an error message, not a process that waits.
"""

from __future__ import annotations

import codecs
import csv
import errno
import gzip
import hashlib
import io
import json
import os
import re
import stat
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, NoReturn

MAX_INPUT_BYTES: Final = 2 * 1024**3
"""Largest input file: the week of the Azure LLM inference trace of 2024 has some 1.3 GB. [B]"""
MAX_CONFIG_BYTES: Final = 64 * 1024**2
"""Largest document, such as a model's config. [B]"""
MAX_INTEGER_DIGITS: Final = 20
"""Longest whole number in JSON: 64-bit hashes and counters have up to 20 digits."""

_MIB: Final = 1024**2
GZIP_MARK: Final = b"\x1f\x8b"
UTF_16_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF_32_MARKS: Final = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_LATIN_IN_UTF_16: Final = re.compile(rb"([\x09-\x7e]\x00){4}|(\x00[\x09-\x7e]){4}")
"""Four letters of a Western text in UTF-16 without a mark."""
ZSTD_MARK: Final = b"\x28\xb5\x2f\xfd"
_PACKED: Final = {
    GZIP_MARK: "it is packed by gzip; unpack it first",
    ZSTD_MARK: "it is packed by zstd; unpack it first",
    b"PK\x03\x04": "it is a workbook or ZIP file; save its table as CSV",
}
_KINDS: Final = (
    (stat.S_ISDIR, "it is a folder"),
    (stat.S_ISFIFO, "it is a pipe, not a file; save its content as a file first"),
    (stat.S_ISCHR, "it is a device, not a file"),
    (stat.S_ISBLK, "it is a device, not a file"),
    (stat.S_ISSOCK, "it is a socket, not a file"),
)


def unicode_of(data: bytes) -> str | None:
    """Return the name of another Unicode encoding that a file begins like; None if it does not."""
    if data.startswith(_UTF_32_MARKS):
        return "UTF-32"
    marked = data.startswith(UTF_16_MARKS) or _LATIN_IN_UTF_16.match(data)
    return "UTF-16" if marked else None


class NotTextError(UnicodeDecodeError):
    """The content is not UTF-8 text; the message says what it is."""

    def __str__(self) -> str:
        """Name the encoding, if the first bytes identify it: spreadsheets and shells of Windows mark it."""
        if (encoding := unicode_of(self.object)) is not None:
            return f"it is {encoding} text; save it as UTF-8"
        if packed := next((what for mark, what in _PACKED.items() if self.object.startswith(mark)), ""):
            return packed
        return f"it is not UTF-8 text, with the byte 0x{self.object[self.start]:02x}; save it as UTF-8"


def is_file(path: Path) -> bool:
    """Return whether a file exists; an invalid name does not."""
    return os.path.isfile(path)  # noqa: PTH113 - Path.is_file raises for a name that is too long


def is_folder(path: Path) -> bool:
    """Return whether a folder exists; an invalid name does not."""
    return os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises for a name that is too long


def read_bytes(path: Path, most_bytes: int = MAX_INPUT_BYTES) -> bytes:
    """Return the content of an ordinary file.

    Parameters
    ----------
    path : Path
        As the user named it.
    most_bytes : int
        Largest file that is read. [B]

    Raises
    ------
    OSError
        The file cannot be read; `strerror` has the reason. Pipes, devices and sockets are rejected without
        waiting, larger files without reading.
    """
    with opened(path, most_bytes) as file:
        # Files of the kernel report size zero but have content.
        data = _read(file.fileno(), most_bytes + 1)
    if len(data) > most_bytes:
        _refuse(errno.EFBIG, f"it is larger than {most_bytes // _MIB} MiB", path)
    return data


def input_sha256(path: Path) -> str:
    """Hash the content of an ordinary file.

    Raises
    ------
    OSError
        As `read_bytes`.
    """
    return hashlib.sha256(read_bytes(path)).hexdigest()


@contextmanager
def opened(path: Path, most_bytes: int) -> Iterator[BinaryIO]:
    """Open an ordinary file for reading piece by piece.

    Parameters
    ----------
    path : Path
        As the user named it.
    most_bytes : int
        Largest file that is opened. [B]

    Raises
    ------
    OSError
        As `read_bytes`.
    """
    if "\0" in str(path):
        _refuse(errno.EINVAL, "its name contains a NUL character", path)
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        _refuse(errno.EINVAL, "its name contains half a character", path)
    # A pipe without a writer would block a plain open.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        for is_kind, what in _KINDS:
            if is_kind(found.st_mode):
                _refuse(errno.EISDIR if is_kind is stat.S_ISDIR else errno.EINVAL, what, path)
        if found.st_size > most_bytes:
            _refuse(errno.EFBIG, f"it is larger than {most_bytes // _MIB} MiB", path)
    except OSError:
        os.close(descriptor)
        raise
    with os.fdopen(descriptor, "rb") as file:
        yield file


def _read(descriptor: int, most_bytes: int) -> bytes:
    """Read to the end or to a number of bytes; memory grows with the content, not with the limit."""
    data = bytearray()
    while len(data) < most_bytes and (piece := os.read(descriptor, min(_MIB, most_bytes - len(data)))):
        data += piece
    return bytes(data)


def read_text(path: Path, most_bytes: int = MAX_INPUT_BYTES) -> str:
    """Return the text of an ordinary UTF-8 file, without a byte-order mark.

    Raises
    ------
    OSError
        See `read_bytes`.
    NotTextError
        It is not UTF-8 text.
    """
    return text_of(read_bytes(path, most_bytes))


def unpacked(data: bytes, path: Path, most_bytes: int = MAX_INPUT_BYTES) -> bytes:
    """Decompress gzip data; return other bytes as they are.

    Parameters
    ----------
    data : bytes
        Content of a file.
    path : Path
        Its name, for errors.
    most_bytes : int
        Largest decompressed size. [B]

    Raises
    ------
    OSError
        The data are damaged or larger than that.
    """
    if not data.startswith(GZIP_MARK):
        return data
    try:
        found = gzip.GzipFile(fileobj=io.BytesIO(data)).read(most_bytes + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        _refuse(errno.EINVAL, f"it is cut short or damaged ({error})", path)
    if len(found) > most_bytes:
        _refuse(errno.EFBIG, f"it is larger than {most_bytes // _MIB} MiB", path)
    return found


def text_of(data: bytes) -> str:
    """Decode UTF-8 text, without a byte-order mark.

    Raises
    ------
    NotTextError
        The bytes are not UTF-8 text.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotTextError(*error.args) from None


def parse_json(text: str, *, infinite: bool = False) -> object:
    """Parse JSON text.

    Parameters
    ----------
    text : str
        Text of one document.
    infinite : bool
        Whether to accept `Infinity` and `NaN`, which Python writes but JSON excludes.

    Raises
    ------
    json.JSONDecodeError
        The text is not JSON, is nested too deeply for Python, or has a whole number of more than
        `MAX_INTEGER_DIGITS` digits or a number that is not finite.
    """
    try:
        constants = float if infinite else _finite
        return json.loads(text, parse_int=_whole, parse_float=_finite, parse_constant=constants)
    except RecursionError:
        raise json.JSONDecodeError("nested too deeply", text, 0) from None
    except _NumberError as error:
        raise json.JSONDecodeError(str(error), text, max(text.find(error.written), 0)) from None


class CsvError(ValueError):
    """A line that is not CSV.

    Attributes
    ----------
    line : int
        Counted from 1.
    reason : str
        The mistake.
    """

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line
        self.reason = reason


_DIVIDER_LINE: Final = re.compile("sep=.?", re.IGNORECASE)


def is_divider_line(line: str) -> bool:
    """Return whether the first line of a CSV file is Excel's `sep=` line."""
    return _DIVIDER_LINE.fullmatch(line.strip().strip('"')) is not None


def csv_rows(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of CSV text, each with its last line number.

    A first line such as `sep=,`, which tells spreadsheets the separator, is skipped.

    Parameters
    ----------
    lines : Iterable[str]
        Lines of the text.

    Raises
    ------
    CsvError
        A line is not CSV, or has a field beyond `csv.field_size_limit` characters.
    """
    # Strict mode: an unclosed quote would absorb all following rows into its cell.
    reader = csv.reader(lines, strict=True)
    start = 1
    try:
        for row, fields in enumerate(reader):
            start = reader.line_num + 1
            if row == 0 and is_divider_line(",".join(fields)):
                continue
            yield reader.line_num, fields
    except csv.Error as error:
        raise CsvError(start, _CSV_REASONS.get(str(error), str(error))) from error


_CSV_REASONS: Final = {
    "unexpected end of data": "a quote that begins in this line has no end",
    "',' expected after '\"'": "no comma follows the quote that ends a cell: "
    "fields are divided by semicolons, or a quote within one is not doubled",
}
"""Messages for the errors of Python's reader."""


CUT_SHORT: Final = "is cut short: it has fewer cells than the header, and no line end"
"""Message for an incomplete row."""


def is_cut_short(line: str, cells: Sequence[str], header: Sequence[str]) -> bool:
    """Return whether a row of a table is incomplete. Spreadsheets omit cells too, but they end the line.

    Parameters
    ----------
    line : str
        The last line of the row, with its end.
    cells, header : Sequence[str]
        Cells of the row, and header of the table.
    """
    return len(cells) < len(header) and not line.endswith(("\n", "\r"))


class _NumberError(Exception):
    """A number that is rejected."""

    def __init__(self, written: str, why: str) -> None:
        shown = written if len(written) <= MAX_INTEGER_DIGITS else f"{written[:MAX_INTEGER_DIGITS]}..."
        super().__init__(f"{shown} {why}")
        self.written = written


def _whole(written: str) -> int:
    if len(written.lstrip("-")) > MAX_INTEGER_DIGITS:
        raise _NumberError(written, f"has more than {MAX_INTEGER_DIGITS} digits")
    return int(written)


def _finite(written: str) -> float:
    number = float(written)
    if number - number != 0:
        raise _NumberError(written, "is not a finite number")
    return number


def _refuse(code: int, why: str, path: Path) -> NoReturn:
    raise OSError(code, why, str(path))
