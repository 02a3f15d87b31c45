"""Questions of a quarterly review: what changed, why, why not, what if, and at what value."""
