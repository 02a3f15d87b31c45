"""What jobs end with when nothing can run them any more."""

from __future__ import annotations


class BackendLostError(Exception):
    """The processes or the cluster that jobs ran on are gone; results that were given out stay valid."""
