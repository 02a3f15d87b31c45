"""Request-level simulation of serving pools: who waits, who is preempted, and when the tokens come."""
