"""YAML of plain values through libyaml where PyYAML has it, which reads in an eighth of the time.

The composer reads fleet files, and knows the place of every value.
"""

from __future__ import annotations

from typing import Any, Final

import yaml

LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Final[Any] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _WholeDumper(_DUMPER):  # type: ignore[misc]
    """Writes what stands in two places twice: some tools read no anchors."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def read_yaml(text: str | bytes) -> Any:
    """Return the value of one document."""
    return yaml.load(text, Loader=LOADER)


def yaml_text(value: object, **form: Any) -> str:
    """Return a value as one document; `form` goes to `yaml.dump`. Keys keep their order unless it says."""
    return str(yaml.dump(value, Dumper=_WholeDumper, **{"sort_keys": False, **form}))
