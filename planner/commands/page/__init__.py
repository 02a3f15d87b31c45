"""The page of `plan serve`: changes of a fleet, its plans, and the web application.

Input: requests of a browser. Output: pages, and the state of a solve as JSON. `form` lists the editable
values of a fleet file, `changes` turns edits into assignments, `session` keeps the plans, and `child` is the
process that solves. `application` answers the requests that `guard` admits, `server` listens for them.
"""
