"""YAML of plain values through libyaml where PyYAML has it, which reads in an eighth of the time.

The composer reads fleet files, and knows the place of every value.
"""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Final[Any] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

_NO_TEXT_ELSEWHERE: Final = re.compile(
    r"[yn]|[-+]?\.?(nan|inf|infinity)"
    r"|[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[-+]?[0-9]+)?|[-+]?0o?[0-7_]+",
    re.IGNORECASE,
)
"""Text that PyYAML takes for text and others do not: `y` is true to kubectl and Helm, and `1e3` is a number
in YAML 1.2, in fleet files too."""


class _WholeDumper(_DUMPER):  # type: ignore[misc]
    """Writes what stands in two places twice, as some tools read no anchors, and quotes what is only text."""

    def ignore_aliases(self, data: object) -> bool:
        return True

    def represent_text(self, text: str) -> yaml.Node:
        style = "'" if _NO_TEXT_ELSEWHERE.fullmatch(text) else None
        node: yaml.Node = self.represent_scalar("tag:yaml.org,2002:str", text, style=style)
        return node


_WholeDumper.add_representer(str, _WholeDumper.represent_text)


def read_yaml(text: str | bytes) -> Any:
    """Return the value of one document."""
    return yaml.load(text, Loader=LOADER)


def yaml_text(value: object, **form: Any) -> str:
    """Return a value as one document; `form` goes to `yaml.dump`. Keys keep their order unless it says."""
    return str(yaml.dump(value, Dumper=_WholeDumper, **{"sort_keys": False, **form}))
