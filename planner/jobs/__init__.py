"""Independent jobs: in this process, in several of this machine, or on a Dask cluster.

In: a function and its arguments. Out: numbered results as they are done, in any order. Entry point:
`run_jobs`; `BackendLostError` is raised if the workers are gone for good. Jobs may run twice, so they must
have no effect.
"""

from fleetplan.planner.jobs.lost import BackendLostError
from fleetplan.planner.jobs.run import CLUSTER, LOCAL, run_jobs

__all__ = ["CLUSTER", "LOCAL", "BackendLostError", "run_jobs"]
