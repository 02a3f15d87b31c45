"""Random fleets with every documented key, planned, verified, questioned, and held to laws.

In: seeds. Out: the keys and pairs of keys that their fleets had, and every failure with its seed.
`fleets` writes fleet files, `keys` counts what is in them, `trial` plans one of them, `laws` changes it in
ways whose effect on the cost is known, `commands` asks the command line, `command_lines` writes it wrongly,
`soak` does it all for many seeds.
"""
