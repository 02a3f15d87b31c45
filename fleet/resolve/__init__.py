"""Resolve a document into a fleet, with every mistake in one list.

In: a `Document`. Out: a `Fleet`: names looked up, defaults applied, values spread over periods, regions and
classes. Entry points: `build_fleet`, `stale_prices` for a fleet, `stored_weights` for a model.
`supply` resolves hardware, pools and offers; `services` resolves demand, latency targets and techniques.
"""

from fleetplan.fleet.resolve.build import build_fleet
from fleetplan.fleet.resolve.finance import stale_prices
from fleetplan.fleet.resolve.services.precision import stored_weights

__all__ = ["build_fleet", "stale_prices", "stored_weights"]
