"""Where the packages of fleetplan lie: everything else about the build is in pyproject.toml.

The four packages stand at the root of the repository and are installed under the one name `fleetplan`. The
links in src/fleetplan serve tools that read the sources (mypy, import-linter, pytest). A build does not need
them, so that an archive without links, or a checkout on Windows, gives the whole wheel.
"""

from setuptools import find_packages, setup

PACKAGES = ("fleet", "perfmodel", "planner", "scenarios")

setup(
    packages=[
        "fleetplan",
        *(f"fleetplan.{name}" for name in PACKAGES),
        *(f"fleetplan.{name}.{inner}" for name in PACKAGES for inner in find_packages(name)),
    ],
    package_dir={"fleetplan": "src/fleetplan", **{f"fleetplan.{name}": name for name in PACKAGES}},
)
