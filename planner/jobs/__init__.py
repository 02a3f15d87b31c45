"""Independent jobs: in this process, in several of this machine, or on a Dask cluster.

In: a function and its arguments. Out: numbered results as they are done, in any order. Entry points:
`open_jobs`, and `connected` for a `Cluster` whose threads are chosen. `BackendLostError` is raised if the
workers are gone for good. Jobs may run twice, so they must have no effect.
"""

from typing import TYPE_CHECKING

from fleetplan.planner.jobs.lost import BackendLostError
from fleetplan.planner.jobs.run import CLUSTER, LOCAL, RunJobs, connected, open_jobs, run_here

if TYPE_CHECKING:
    from fleetplan.planner.jobs.cluster import Cluster as Cluster

__all__ = ["CLUSTER", "LOCAL", "BackendLostError", "RunJobs", "connected", "open_jobs", "run_here"]
