"""Operator times: measured where a table has them, interpolated between, from the roofline elsewhere.

In: operators and an accelerator. Out: `OperatorTimes`, each with its `Provenance`. Entry points:
`operator_source` builds the source of times of an evaluator; `TableLibrary` chooses among the tables;
`read_own_table` and `store_own_table` import tables of users.

`measured` reads the packaged tables, `own` those of users; `interpolation` finds times between rows;
`formulas` holds times without a table.
"""

from typing import TYPE_CHECKING

from fleetplan.fleet.packages import imported_when_asked

if TYPE_CHECKING:
    from fleetplan.perfmodel.optables.choice import ChosenRows, TableLibrary, TableSource
    from fleetplan.perfmodel.optables.measured.families import FAMILIES
    from fleetplan.perfmodel.optables.measured.tables import FRAMEWORKS, newest_first
    from fleetplan.perfmodel.optables.own.formats import OwnTable, read_own_table
    from fleetplan.perfmodel.optables.own.store import store_own_table
    from fleetplan.perfmodel.optables.rows import MeasuredRows, fastest
    from fleetplan.perfmodel.optables.source import OperatorSource, measured_versions, operator_source
    from fleetplan.perfmodel.optables.times import OperatorTimes, UnsupportedDtype
else:
    __getattr__ = imported_when_asked(__name__)

__all__ = [
    "FAMILIES",
    "FRAMEWORKS",
    "ChosenRows",
    "MeasuredRows",
    "OperatorSource",
    "OperatorTimes",
    "OwnTable",
    "TableLibrary",
    "TableSource",
    "UnsupportedDtype",
    "fastest",
    "measured_versions",
    "newest_first",
    "operator_source",
    "read_own_table",
    "store_own_table",
]
