"""Why a fleet has no plan: the requirements that conflict, and the least that would have to give."""
