"""The packaged catalogue: hardware, prices and models, each figure with its source.

In: the YAML files of this folder. Out: `accelerators` and `efficiency_profiles` of hardware, `price_book` and
`price_book_columns` of prices, `model_catalog` of models.
"""

from fleetplan.fleet.catalog.hardware_and_prices import (
    Price,
    accelerators,
    efficiency_profiles,
    price_book,
    price_book_columns,
)
from fleetplan.fleet.catalog.models import ModelFacts, UnknownModelError, model_catalog

__all__ = [
    "ModelFacts",
    "Price",
    "UnknownModelError",
    "accelerators",
    "efficiency_profiles",
    "model_catalog",
    "price_book",
    "price_book_columns",
]
