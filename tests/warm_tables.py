"""Data that every command reads: options, catalogue, templates and source.

A warm process has read it when it begins; it stays as it is while tests run.
"""

from __future__ import annotations

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.packages import installed_versions
from fleetplan.planner import cli
from fleetplan.planner.candidates import candidate_cache
from fleetplan.planner.report.html.templates import template

for name in cli._names():
    cli._program(name)
accelerators()
installed_versions()
candidate_cache.source_sha256(*candidate_cache._ROOMS)
for name in ("parts.html.j2", "report.html.j2"):
    template("fleetplan.planner.report.html", name)
