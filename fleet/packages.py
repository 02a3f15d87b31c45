"""Versions of the packages that a result depends on."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Final

PACKAGES: Final = ("fleetplan", "ortools", "highspy", "numpy", "scipy", "pandas", "aiconfigurator-core")
"""What answers depend on: the planner, its solvers, what they compute with, and the measured tables."""


@cache
def installed_version(package: str, otherwise: str = "not installed") -> str:
    """Version of an installed package, looked up once: its file is parsed for it.

    Parameters
    ----------
    package : str
        Its name.
    otherwise : str
        What is said of a package that is not installed.
    """
    try:
        return version(package)
    except PackageNotFoundError:
        return otherwise


def installed_versions() -> dict[str, str]:
    """Version of every package that answers depend on."""
    return {package: installed_version(package) for package in PACKAGES}
