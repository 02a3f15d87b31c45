"""Files that other tools read: plan.json and CSV tables."""
