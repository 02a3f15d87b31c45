"""The page of `plan serve`: what is changed about a fleet, its plans, and the web application around them.

In: requests of a browser. Out: pages, and the state of a solve as JSON. `form` says what of a fleet file the
page changes, `changes` turns what was changed into assignments, `session` keeps the plans, and `child` is the
process that makes them. `application` answers requests that `guard` lets through, `server` listens for them.
"""
