"""Units and lengths of time, by definition; other constants have a source."""

from __future__ import annotations

from typing import Final

MS_PER_S: Final = 1e3

US_PER_MS: Final = 1e3

NS_PER_MS: Final = 1e6

MS_PER_US: Final = 1e-3

MS_PER_NS: Final = 1e-6

MS_PER_MINUTE: Final = 60e3

MS_PER_HOUR: Final = 3.6e6

SECONDS_PER_HOUR: Final = 3600.0

HOURS_PER_DAY: Final = 24.0

HOURS_PER_MONTH: Final = 730.0
"""A twelfth of a year of 8,760 hours. [h]"""

HOURS_PER_QUARTER: Final = 2190
"""A quarter of a year of 8,760 hours. [h]"""

QUARTERS_PER_YEAR: Final = 4

MONTHS_PER_QUARTER: Final = 3

MONTHS_PER_YEAR: Final = 12

BYTES_PER_GB: Final = 1e9

BYTES_PER_GIB: Final = 2.0**30

BYTES_PER_MS_OF_GB_PER_S: Final = 1e6
"""Bytes that a bandwidth of 1 GB/s moves in a millisecond. [bytes]"""

W_PER_KW: Final = 1000.0

KWH_PER_MWH: Final = 1000.0
