"""What people see of a plan."""
