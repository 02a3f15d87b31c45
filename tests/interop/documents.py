"""Files of several YAML documents."""

from __future__ import annotations

from typing import Any

import yaml

from fleetplan.fleet.document.plain import LOADER


def read_all_yaml(text: str) -> list[Any]:
    """Return the values of all documents."""
    return list(yaml.load_all(text, Loader=LOADER))
