"""Which published measurements were in view when the model was changed, and say less than blind ones."""

from __future__ import annotations

from typing import Final

import pandas as pd
from benchmarks.blind_articles import SETS_EXPLAINED
from benchmarks.blind_cards import SETS_MENDED
from benchmarks.blind_cookbooks import SETS_CORRECTED
from benchmarks.blind_guides import SETS_SEEN
from benchmarks.blind_threads import SETS_IN_VIEW

USED_SETS: Final = ("amd", "oracle", "mlperf-5.1", "sglang-cookbook")
USED_PARTS: Final = ("MI300X", "MI325X")
USED_MODELS: Final = ("MiniMaxAI/MiniMax-M2", "google/gemma-4")
"""How the names of models begin whose rows were in view when their norms were priced: of MiniMax-M2 what
ranks exchange for them (`perfmodel/steps/decoder_step.py`), of Gemma 4 those of what blocks put out
(`perfmodel/steps/output_norms.py`); nothing of it was fitted. On MI300X they take 2 of 37 % off and 1 to 6 of
9 to 44 %: those rows still show what a stranger will find."""

SETS_GATHERED: Final = ("trtllm-1.2-rtx",)
"""Sets whose rows of attention-DP were in view when experts' tokens were gathered where no kernel sends them
(`perfmodel/optables/dispatch.py`); nothing of it was fitted."""

SETS_READ_COLD: Final = ("millstone-long",)
"""Sets whose rows of RTX PRO 6000 showed that its tables read contexts faster than its memory can
(`perfmodel/optables/cold_memory.py`); the limit comes from the tables."""


def is_used(rows: pd.DataFrame) -> pd.Series[bool]:
    """Whether the model was changed with a row in view, by row."""
    of_parts = rows["set"].isin(USED_SETS) & rows["hardware"].isin(USED_PARTS)
    of_sets = rows["set"].isin((*SETS_IN_VIEW, *SETS_CORRECTED, *SETS_EXPLAINED, *SETS_SEEN, *SETS_MENDED))
    of_models = rows["model"].str.startswith(USED_MODELS) & ~rows["hardware"].isin(USED_PARTS)
    of_ranks = rows["set"].isin(SETS_GATHERED) & (rows["dp"] > 1)
    of_caches = rows["set"].isin(SETS_READ_COLD) & (rows["hardware"] == "RTX-PRO-6000-Server")
    return of_parts | of_sets | of_models | of_ranks | of_caches
