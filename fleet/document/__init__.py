"""YAML as a tree whose values know their place.

In: a fleet file and the files that it imports. Out: a `Document` of `Node`s, each with file, line and column.
Large tables of records (CSV, JSON lines, Parquet) are read by `records.open_table`, row by row, tables that
people keep by `text_tables.read_text_table`.

Entry points: `read_document` for a file, `read_fragment` for a value on the command line, `compose` for YAML
events, `merge` to lay one tree on another, `YamlText` to change values in a file and keep its comments.
"""

from fleetplan.fleet.document.composer import compose
from fleetplan.fleet.document.document import Document, Entry, KeyPath, Node, SourcePlace, merge
from fleetplan.fleet.document.edit import YamlText
from fleetplan.fleet.document.source import read_document, read_fragment

__all__ = [
    "Document",
    "Entry",
    "KeyPath",
    "Node",
    "SourcePlace",
    "YamlText",
    "compose",
    "merge",
    "read_document",
    "read_fragment",
]
