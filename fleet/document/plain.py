"""Read and write YAML of plain values through libyaml, if PyYAML has it: eight times faster.

Fleet files are read by the composer, which keeps the place of every value.
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
"""Text that PyYAML writes without quotes but other readers convert: `y` is true to kubectl and Helm, and
`1e3` is a number in YAML 1.2 and in fleet files."""


class _WholeDumper(_DUMPER):  # type: ignore[misc]
    """Writes shared values in full, because some tools do not read anchors, and quotes ambiguous text."""

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
    """Return a value as one document; `form` goes to `yaml.dump`. Keys keep their order by default."""
    return str(yaml.dump(value, Dumper=_WholeDumper, **{"sort_keys": False, **form}))
