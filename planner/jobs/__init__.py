"""Independent jobs: in this process, in several local processes, or on a Dask cluster.

In: a function and its arguments. Out: numbered results in order of completion. Entry points: `open_jobs`, and
`connected` for a `Cluster` whose threads can be chosen. `BackendLostError` is raised if all workers are gone.
Jobs may run twice, so they must have no side effects.
"""

from typing import TYPE_CHECKING

from fleetplan.planner.jobs.backend_errors import BackendLostError
from fleetplan.planner.jobs.run import CLUSTER, LOCAL, RunJobs, connected, open_jobs, run_here

if TYPE_CHECKING:
    from fleetplan.planner.jobs.cluster import Cluster as Cluster

__all__ = ["CLUSTER", "LOCAL", "BackendLostError", "RunJobs", "connected", "open_jobs", "run_here"]
