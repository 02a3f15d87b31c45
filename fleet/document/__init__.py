"""Read YAML as a tree in which every value has its file, line and column.

In: a fleet file and the files that it imports. Out: a `Document` of `Node`s, each with file, line and column.
`records.open_table` reads large tables of records (CSV, JSON lines, Parquet) row by row;
`text_tables.read_text_table` reads tables that people maintain.

Entry points: `read_document` for a file, `read_fragment` for a value on the command line, `compose` for YAML
events, `merge` to merge one tree over another, `YamlText` to change values in a file and keep its comments.
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
