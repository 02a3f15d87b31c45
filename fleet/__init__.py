"""Read fleet files into resolved supply, services and policy.

`document` reads YAML into a tree in which every value has its place. `schema` defines the keys and types of a
fleet file. `catalog` has hardware, prices and models. `resolve` turns all of it into the types of
`inventory`, the only ones that other packages plan with.

Single modules: `errors` (mistakes in a file, with their place), `tco` and `power` (formulas), `periods`
(quarters), `tables` (columns of CSV tables).
"""
