"""The questions of a quarterly review: what changed, why, why not, what if, what is it worth."""
