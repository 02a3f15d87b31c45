"""Latency, throughput, memory and power of given configurations: the table of `plan predict`.

In: a table of cases (`read_cases`). Out: the same rows with the predicted figures (`predict`). `TPOT_ERROR`
is the error against published benchmarks by hardware; `BLIND_ERROR` that against figures of users and vendors
that the model was not built with; `own_error_text` and `far_family_text` describe those of some
architectures.
"""

from typing import TYPE_CHECKING

from fleetplan.fleet.packages import imported_when_asked

if TYPE_CHECKING:
    from fleetplan.perfmodel.predict.case_files import read_cases
    from fleetplan.perfmodel.predict.cases import DEFAULT_FRAMEWORK, FRAMEWORKS, Cases, parse_cases
    from fleetplan.perfmodel.predict.columns import NUMBER_COLUMNS, OUTPUT_COLUMNS
    from fleetplan.perfmodel.predict.prediction import predict
    from fleetplan.perfmodel.predict.published_error import (
        BLIND_ERROR,
        FAR_FAMILIES,
        FAR_RATIO,
        OWN_TPOT_ERROR,
        RECENT_BLIND_ERROR,
        TPOT_ERROR,
        WEAK_RATIO,
        far_family_text,
        own_error_text,
    )
else:
    __getattr__ = imported_when_asked(__name__)

__all__ = [
    "BLIND_ERROR",
    "DEFAULT_FRAMEWORK",
    "FAR_FAMILIES",
    "FAR_RATIO",
    "FRAMEWORKS",
    "NUMBER_COLUMNS",
    "OUTPUT_COLUMNS",
    "OWN_TPOT_ERROR",
    "RECENT_BLIND_ERROR",
    "TPOT_ERROR",
    "WEAK_RATIO",
    "Cases",
    "far_family_text",
    "own_error_text",
    "parse_cases",
    "predict",
    "read_cases",
]
