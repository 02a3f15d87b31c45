"""Why something is not in a plan: the reason, what it would cost there, and what would bring it in."""
