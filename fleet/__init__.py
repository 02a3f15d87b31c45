"""The fleet: from a fleet file to resolved supply, services and policy.

`document` reads YAML into a tree whose values know their place. `schema` defines the keys and types of a
fleet file. `catalog` holds hardware, prices and models. `resolve` turns all of it into the types of
`inventory`, the only ones that other packages plan with.

Single modules: `errors` (mistakes in a file, with their place), `tco` and `power` (formulas), `periods`
(quarters), `tables` (columns of CSV tables).
"""
