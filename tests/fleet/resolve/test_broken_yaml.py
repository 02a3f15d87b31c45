"""Files that are no YAML, or not the part of it that fleet files use, give exactly their messages."""

from pathlib import Path

from tests.fleet.resolve.broken_files import BrokenTarget, cases, check_messages

BROKEN: list[BrokenTarget] = [
    (
        "duplicate key",
        "name: small",
        "name: small\nname: large",
        [
            "3:1: name: the key 'name' is given twice; first given in line 2",
        ],
    ),
    (
        "duplicate key, nested",
        "hosts: 4",
        "hosts: 4, hosts: 5",
        [
            "8:70: pools[0].hosts: the key 'hosts' is given twice; first given in line 8",
        ],
    ),
    (
        "not a number",
        "power_kw: 4000",
        "power_kw: .nan",
        [
            (
                "5:23: regions.us-east.power_kw: .nan is not a finite number; give a number, or quote it if "
                "it is a name"
            ),
        ],
    ),
    (
        "nan without a dot",
        "ttft_ms: 350",
        "ttft_ms: NaN",
        [
            (
                "15:20: services[0].slo.ttft_ms: NaN is not a finite number; give a number, or quote it if it"
                " is a name"
            ),
        ],
    ),
    (
        "infinity",
        "power_kw: 4000",
        "power_kw: .inf",
        [
            (
                "5:23: regions.us-east.power_kw: .inf is not a finite number; give a number, or quote it if "
                "it is a name"
            ),
        ],
    ),
    (
        "too large a number",
        "power_kw: 4000",
        "power_kw: 1e400",
        [
            "5:23: regions.us-east.power_kw: 1e400 is too large for a number",
        ],
    ),
    (
        "unclosed bracket",
        "policy: {unmet: forbid}",
        "policy: {unmet: forbid",
        [
            (
                "18:1: not valid YAML: while parsing a flow mapping from line 17 on "
                "did not find expected ',' or '}'"
            ),
        ],
    ),
    (
        "tab for indentation",
        "  us-east:",
        "\tus-east:",
        [
            (
                "5:1: not valid YAML: while scanning for the next token found character that cannot start any"
                " token; indent with spaces; YAML takes no tabs"
            ),
        ],
    ),
    (
        "no-break space",
        "name: small",
        "name:\u00a0small",
        [
            (
                "3:1: not valid YAML: while scanning a simple key could not find expected ':'; "
                "a space there is a no-break space (U+00A0); type a plain one"
            ),
        ],
    ),
    (
        "no space after the colon",
        "name: small",
        "name:small",
        [
            (
                "3:1: not valid YAML: while scanning a simple key could not find expected ':'; "
                "write `key: value`, with a space after the colon"
            ),
        ],
    ),
    (
        "key further in than the one above",
        "name: small",
        "name: small\n  title: small",
        [
            (
                "3:8: not valid YAML: mapping values are not allowed in this context; "
                "write one `key: value` a line, and quote text that holds `: `"
            ),
        ],
    ),
    (
        "key further out than the one above",
        "    model: llama3-70b",
        "   model: llama3-70b",
        [
            (
                "13:4: not valid YAML: while parsing a block collection did not find expected '-' indicator; "
                "items of a list begin in the same column, with `- `"
            ),
        ],
    ),
    (
        "tag",
        "name: small",
        "name: !!python/name:os.system small",
        [
            "2:7: name: the tag tag:yaml.org,2002:python/name:os.system is not allowed",
        ],
    ),
    (
        "tag of YAML itself",
        "name: small",
        "name: !!str small",
        [
            "2:7: name: the tag !!str is not allowed; quote the value: a value is read as what it looks like",
        ],
    ),
    (
        "no-break space in a key",
        "name: small",
        "name: small\nhorizon\u00a0: {}",
        [
            "3:1: horizon\u00a0: unknown key; a space there is a no-break space (U+00A0); type a plain one",
        ],
    ),
    (
        "alias without an anchor",
        "name: small",
        "name: *small",
        [
            "2:7: name: the alias *small has no anchor &small before it",
        ],
    ),
    (
        "alias within its own anchor",
        "policy: {unmet: forbid}",
        "policy: &p {unmet: *p}",
        [
            "17:20: policy.unmet: the alias *p is inside the value it refers to",
        ],
    ),
    (
        "two documents",
        "policy:",
        "---\npolicy:",
        [
            "17:1: a file holds one document; remove the line `---`",
        ],
    ),
    (
        "key that is a list",
        "name: small",
        "[a, b]: small",
        [
            "2:1: a key must be plain text",
        ],
    ),
    (
        "unclosed quotes",
        "name: chat",
        'name: "chat',
        [
            (
                "18:1: not valid YAML: while scanning a quoted scalar from line 12 on "
                "found unexpected end of stream"
            ),
        ],
    ),
    (
        "conflict of a merge",
        "    slo: {ttft_ms: 350, tpot_ms: 30}\n",
        "<<<<<<< HEAD\n    slo: {ttft_ms: 350}\n=======\n    slo: {ttft_ms: 300}\n>>>>>>> theirs\n",
        [
            (
                "16:8: not valid YAML: while scanning a simple key could not find expected ':'; "
                "a merge left its conflict there: keep one side, and remove the lines of <, = and >"
            ),
        ],
    ),
]


@cases(BROKEN)
def test_a_broken_file_says_what_is_wrong_and_where(
    folder: Path, old: str, new: str, expected: list[str]
) -> None:
    check_messages(old, new, expected)
