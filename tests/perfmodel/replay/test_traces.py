"""Trace files of every format."""

import json
from pathlib import Path

import pytest

from fleetplan.fleet.errors import InputError
from fleetplan.perfmodel.replay import Trace, prefix_blocks, read_trace
from fleetplan.perfmodel.replay.prefix_blocks import PromptMemory, common_blocks_of, prompt_sessions
from fleetplan.perfmodel.serving.requests import NO_SESSION

AZURE = """\
TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,396,109
2023-11-16 18:15:47.1805900,879,55
"""
AZURE_2024 = "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930+00:00,2162,5\n"
BURSTGPT = """\
Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type
5,a,1.0,ChatGPT,472,18,490,Conversation log
45,,1.0,ChatGPT,1087,230,1317,Conversation log
118,a,1.0,GPT-4,417,276,693,Conversation log
120,a,1.0,GPT-4,417,0,417,Conversation log
"""
OWN = "arrival_s,input_tokens,output_tokens,session,prefix_tokens\n0.5,100,10,x,20\n1.5,200,20,,0\n"


def trace_of(tmp_path: Path, text: str, name: str = "trace.csv") -> Trace:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_trace(path)


def mooncake(*rows: tuple[int, int, int, list[int]]) -> str:
    names = ("timestamp", "input_length", "output_length", "hash_ids")
    return "\n".join(json.dumps(dict(zip(names, row, strict=True))) for row in rows)


def test_azure_rows_come_in_the_order_of_their_times(tmp_path: Path) -> None:
    found = trace_of(tmp_path, AZURE)
    assert found.form == "azure"
    assert found.requests.arrival_ms == pytest.approx([0.0, 500.0, 4314.579], abs=1e-2)
    assert found.requests.input_tokens.tolist() == [374, 879, 396]
    assert found.requests.session.size == 0
    assert trace_of(tmp_path, AZURE_2024).requests.output_tokens.tolist() == [5]


def test_burstgpt_has_sessions_and_failures(tmp_path: Path) -> None:
    found = trace_of(tmp_path, BURSTGPT)
    assert found.form == "burstgpt"
    assert found.requests.arrival_ms.tolist() == [0.0, 40e3, 113e3]
    assert found.requests.session.tolist() == [0, NO_SESSION, 0]
    assert len(found.rejected) == 1
    assert found.rejected[0].endswith(
        "trace.csv:5: a request needs at least one prompt token and one generated token"
    )


def test_our_own_format(tmp_path: Path) -> None:
    found = trace_of(tmp_path, OWN)
    assert found.form == "own"
    assert found.requests.prefix_tokens.tolist() == [20, 0]
    assert found.requests.session.tolist() == [0, NO_SESSION]


def test_mooncake_prompts_share_blocks(tmp_path: Path) -> None:
    rows = mooncake(
        (0, 1500, 10, [1, 2, 3]),
        (1000, 1500, 10, [1, 5, 6]),
        (3000, 2600, 10, [1, 2, 3, 8, 9]),
        (4000, 500, 10, [1]),
    )
    found = trace_of(tmp_path, rows, "trace.jsonl")
    assert found.form == "mooncake"
    # The third goes on where the first ended; the others stand alone.
    assert found.requests.session.tolist() == [0, NO_SESSION, 0, NO_SESSION]


def test_a_session_goes_on_over_several_turns() -> None:
    prompts = [(1, 2), (7, 8), (1, 2, 3), (5, 6), (1, 2, 3, 4), (11, 12), (13, 14)]
    assert common_blocks_of(prompts) == 0
    assert prompt_sessions(prompts).tolist() == [0, NO_SESSION, 0, NO_SESSION, 0, NO_SESSION, NO_SESSION]


def test_blocks_of_hashes_beyond_63_bits_are_told_apart() -> None:
    high = 2**64 - 1
    assert common_blocks_of([(high,), (high - 1,), (high - 2,), (1,)]) == 0
    assert prompt_sessions([(high, 1), (high - 1, 2)]).tolist() == [NO_SESSION, NO_SESSION]


def test_blocks_of_long_ago_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefix_blocks, "REMEMBERED_BLOCKS", 100)
    memory, kept = PromptMemory(common_blocks=1), []
    memory.add((-1, -2))
    for number in range(1000):
        # The common block is never forgotten, and those of a session that goes on are not.
        assert memory.add((-1, -2, -3))[0] == (3 if number else 2)
        assert memory.add((-1, number))[0] == 1
        kept.append(len(memory))
    assert memory.add((-1, 950))[0] == 2
    assert memory.add((-1, 5))[0] == 1
    assert max(kept) <= 2 * 100 + 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("arrival_s;input_tokens;output_tokens\n1;2;3\n", "t.*:1:1: fields are divided by semicolons"),
        ("a,b\n1,2\n", "is not a trace of a known format"),
        ("arrival_s,input_tokens,output_tokens\n1,0,5\n", "none of its rows can be used; the first:"),
        ('{"timestamp": 0\n', "is not JSON"),
        ("", "is not a trace of a known format"),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        trace_of(tmp_path, text)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_trace(tmp_path / "none.csv")


def test_many_rejections_are_counted(tmp_path: Path) -> None:
    text = "arrival_s,input_tokens,output_tokens\n0,5,5\n" + "1,0,5\n" * 9
    rejected = trace_of(tmp_path, text).rejected
    assert len(rejected) == 6
    assert rejected[-1] == "4 more rows"
