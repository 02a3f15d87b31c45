"""Latency, throughput, memory and power of a serving configuration, from measured operators.

From the bottom up: `operators` and their work; `architecture` (models), `optables` (operator times) and
`parallelism` (layouts); `steps` (one pass through a decoder); `techniques` (what changes a step) and
`microbench` (measures operators); `evaluator` (a phase of a replica); `serving` (a replica in steady state);
`landscape` (all configurations), `queueing` and `replay`; `predict`; `calibrate`.

Entry points: `evaluator.build_evaluator`, `landscape.sweep`, `predict.predict`, `queueing.capacity_lines`,
`replay.run_service`, `calibrate.calibrate`. A room imports from the rooms below it, never from those above.
"""
