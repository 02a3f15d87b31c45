"""Look up prices with sources and dates, from the price book and the fleet file."""

from __future__ import annotations

from collections.abc import Mapping

from fleetplan.fleet.catalog import price_book
from fleetplan.fleet.document import KeyPath
from fleetplan.fleet.errors import names_hint
from fleetplan.fleet.resolve.context import Context
from fleetplan.fleet.schema.supply import HardwareSpec


class PriceBook:
    """The price book with the prices of the fleet file's own hardware added."""

    def __init__(self, context: Context, block: Mapping[str, HardwareSpec]) -> None:
        self._context = context
        self._own = {name: spec.price_usd_per_accelerator_hour for name, spec in block.items()}
        self._like = {name: spec.like for name, spec in block.items() if spec.like is not None}

    def known(self, hardware: str) -> dict[str, tuple[float, str]]:
        """Return the price [USD/h] and its source of a part, by column of the price book."""
        entries = price_book().get(hardware, price_book().get(self._like.get(hardware, ""), {}))
        found = {
            column: (price.usd_per_accelerator_hour, f"price book {column}: {price.source}, {price.as_of}")
            for column, price in entries.items()
        }
        own = {
            column: (value, f"fleet file, hardware.{hardware}.price_usd_per_accelerator_hour.{column}")
            for column, value in self._own.get(hardware, {}).items()
        }
        return {**found, **own}

    def hint(self, hardware: str) -> str:
        """Return the price book's columns for a part, for the message about a missing price."""
        known = self.known(hardware)
        if not known:
            return f"the price book has no price of {hardware}"
        figures = ", ".join(f"{column} {value:g}" for column, (value, _) in known.items())
        return f"the price book has for {hardware} in USD per accelerator-hour: {figures}"

    def as_of(
        self, context: Context, key_path: KeyPath, hardware: str, stated: str | None, column: str | None
    ) -> str | None:
        """Return the date of a price: from the block, or of the price book's column."""
        if column is None:
            return stated
        if stated is not None:
            context.error((*key_path, "price_as_of"), "the price book dates its own prices", "leave it out")
        entries = price_book().get(hardware, price_book().get(self._like.get(hardware, ""), {}))
        own = column in self._own.get(hardware, {})
        return entries[column].as_of if column in entries and not own else None

    def rent(
        self, key_path: KeyPath, hardware: str, usd: float | Mapping[str, float] | None, column: str | None
    ) -> tuple[tuple[float, ...] | None, str]:
        """Return the rent by period [USD/h] and its source; exactly one of `usd` and `column` is set."""
        context = self._context
        if column is None:
            return context.numbers(key_path, usd), context.source(key_path)
        known = self.known(hardware)
        if column not in known:
            here = (*key_path[:-1], "price_book")
            message = f"the price book has no {column!r} for {hardware}"
            context.error(here, message, names_hint(column, tuple(known)))
            return None, ""
        value, source = known[column]
        return (value,) * len(context.periods), source
