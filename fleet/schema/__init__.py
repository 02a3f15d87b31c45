"""The fleet file as it is written: keys, types and ranges.

In: a `Document`. Out: `Parsed`, a `FleetSpec` with every mistake of form at its place. Entry points: `parse`,
and `mistakes_of` for a pool or an offer alone,
and `schema_text` for the JSON Schema that editors read. Names are looked up later, in `fleet.resolve`.
"""

from fleetplan.fleet.schema.fleet import FleetSpec
from fleetplan.fleet.schema.json_schema import schema_text
from fleetplan.fleet.schema.parsed import Parsed, mistakes_of, parse

__all__ = ["FleetSpec", "Parsed", "mistakes_of", "parse", "schema_text"]
