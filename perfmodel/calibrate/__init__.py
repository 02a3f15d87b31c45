"""Calibrate the performance model with the user's measurements.

In: a table of measured cases. Out: a `CalibrationFit` of ratios by scope (`calibrate`), which
`write_calibration` keeps and `read_calibration` reads again.
"""

from fleetplan.perfmodel.calibrate.files import beside, read_calibration, write_calibration
from fleetplan.perfmodel.calibrate.fit import CalibrationFit, calibrate

__all__ = ["CalibrationFit", "beside", "calibrate", "read_calibration", "write_calibration"]
