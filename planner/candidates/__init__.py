"""Configurations that may serve: evaluated, under load, without those that others dominate.

In: a resolved fleet, from its own rates or from perfmodel. Out: a `CandidateSet` with the rejections.
Entry points: `build.build_candidates`, `landscape.service_evaluator`.
"""
