"""Error of jobs whose workers are gone."""

from __future__ import annotations


class BackendLostError(Exception):
    """The processes or the cluster that ran jobs are gone; earlier results stay valid."""
