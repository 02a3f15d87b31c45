"""The best plan of a problem, a proven bound on it, or why there is none.

In: a `Problem` and `SearchLimits`. Out: a `SearchResult` with raw values. Entry points: `stages.search`,
`result.SearchLimits`, `feasibility.feasibility`, `shortage.find_shortages`. `solvers` solve one model,
`blocks` solve a large one block by block, `scenarios` and `joint_plans` solve uncertain demand.
"""
