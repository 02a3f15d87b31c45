"""Server of the OpenAI API that answers at set times and records requests; standard library only.

It counts a token a word. What it keeps is the truth that imported results of load generators are held to.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

FIRST_TOKEN_S: Final = 0.06
"""Time from a request to its first token. [s]"""

TOKEN_S: Final = 0.012
"""Time from one token to the next. [s]"""


@dataclass(frozen=True)
class Seen:
    """One request: when it came and was done, its tokens, and whether it was answered. [s]"""

    came: float
    done: float
    prompt: int
    output: int
    answered: bool


@dataclass
class Server:
    """Behaviour and records of a server.

    Attributes
    ----------
    fails_every : int
        Every so many requests one is refused; 0 for none.
    drafted : int
        Tokens of a step of speculative decoding, of which all are accepted; 1 without.
    cold : int
        First requests whose first token takes ten times as long.
    """

    fails_every: int = 0
    drafted: int = 1
    cold: int = 0
    seen: list[Seen] = field(default_factory=list)
    port: int = 0
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode().split("\r\n")
                headers = {
                    key.lower(): value.strip() for key, _, value in (each.partition(":") for each in lines)
                }
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                method, path, _ = first.split(" ", 2)
                if method == "POST" and path.endswith("completions"):
                    await self._complete(writer, json.loads(body), chat="chat" in path)
                else:
                    await self._answer(writer, *self._page(path))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _page(self, path: str) -> tuple[str, str]:
        """Type and text of what is no completion."""
        if path.startswith("/metrics"):
            return "text/plain", self._metrics()
        pages: dict[str, Any] = {
            "/v1/models": {
                "object": "list",
                "data": [{"id": "mock", "object": "model", "max_model_len": 4096}],
            },
            "/server_info": {"version": "0.5.23", "tp_size": 1, **self._states()},
            "/get_server_info": {"version": "0.5.23", "tp_size": 1, **self._states()},
        }
        return "application/json", json.dumps(pages.get(path.split("?", maxsplit=1)[0], {}))

    def _states(self) -> dict[str, Any]:
        """Return the accepted draft tokens as SGLang reports them."""
        return {} if self.drafted == 1 else {"internal_states": [{"avg_spec_accept_length": self.drafted}]}

    def _metrics(self) -> str:
        """Return vLLM's counters of speculative decoding since the start."""
        if self.drafted == 1:
            return ""
        steps = sum(each.output for each in self.seen) // self.drafted
        counts = {
            "num_drafts": steps,
            "num_draft_tokens": steps * (self.drafted - 1),
            "num_accepted_tokens": steps * (self.drafted - 1),
        }
        return "".join(
            f'# TYPE vllm:spec_decode_{name} counter\nvllm:spec_decode_{name}_total{{engine="0"}} {value}\n'
            for name, value in counts.items()
        )

    def _accepted(self, output: int) -> dict[str, Any]:
        """Return the accepted draft tokens as vLLM reports them with each answer."""
        if self.drafted == 1:
            return {}
        steps, accepted = output // self.drafted, self.drafted - 1
        said = {
            "mean_acceptance_length": float(self.drafted),
            "draft_acceptance_rate": 1.0,
            "acceptance_histogram": [0] * accepted + [steps],
            "num_accepted_draft_tokens": steps * accepted,
            "num_draft_tokens": steps * accepted,
            "num_spec_steps": steps,
            "num_spec_tokens": accepted,
        }
        return {"metrics": {"speculative_decoding": said}}

    async def _answer(
        self, writer: asyncio.StreamWriter, kind: str, text: str, status: HTTPStatus = HTTPStatus.OK
    ) -> None:
        body = text.encode()
        head = [f"HTTP/1.1 {int(status)} {status.phrase}", f"Content-Type: {kind}"]
        head += [f"Content-Length: {len(body)}", "", ""]
        writer.write("\r\n".join(head).encode() + body)
        await writer.drain()

    async def _complete(self, writer: asyncio.StreamWriter, asked: dict[str, Any], *, chat: bool) -> None:
        came, prompt = time.monotonic(), _words(asked["messages"] if chat else asked["prompt"])
        output = int(asked.get("max_completion_tokens") or asked.get("max_tokens") or 16)
        number = next(self._numbers)
        first_s = FIRST_TOKEN_S * (10 if number <= self.cold else 1)
        if self.fails_every and number % self.fails_every == 0:
            await self._answer(
                writer, "application/json", '{"error": "busy"}', HTTPStatus.SERVICE_UNAVAILABLE
            )
            self.seen.append(Seen(came, time.monotonic(), prompt, 0, answered=False))
            return
        usage = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
        streamed = bool(asked.get("stream"))
        if streamed:
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
            )
        for position in range(0, output, self.drafted):
            # Against the start: sleeps that each last a little longer would add up.
            at = came + first_s + position * TOKEN_S
            await asyncio.sleep(max(0.0, at - time.monotonic()))
            if streamed:
                text = " w1" * min(self.drafted, output - position)
                await _event(writer, _chunk(text, chat, None))
        if streamed:
            await _event(writer, {**_chunk("", chat, "length"), "usage": usage, **self._accepted(output)})
            await _event(writer, "[DONE]")
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        else:
            whole = {**_chunk(" w1" * output, chat, "length", streamed=False), "usage": usage}
            await self._answer(writer, "application/json", json.dumps(whole))
        self.seen.append(Seen(came, time.monotonic(), prompt, output, answered=True))


def _words(prompt: object) -> int:
    """Tokens of a prompt: words, or the ids that a client counted itself."""
    if isinstance(prompt, str):
        return len(prompt.split())
    if isinstance(prompt, Sequence):
        return sum(1 if isinstance(each, int) else _words(each) for each in prompt)
    if isinstance(prompt, dict):
        return _words(prompt.get("content", prompt.get("text", "")))
    return 0


def _chunk(text: str, chat: bool, finish: str | None, *, streamed: bool = True) -> dict[str, Any]:
    said = {"role": "assistant", "content": text}
    choice: dict[str, Any] = {"index": 0, "finish_reason": finish}
    choice |= {"delta" if streamed else "message": said} if chat else {"text": text}
    kind = ("chat.completion.chunk" if streamed else "chat.completion") if chat else "text_completion"
    return {"id": "1", "object": kind, "created": 0, "model": "mock", "choices": [choice]}


async def _event(writer: asyncio.StreamWriter, data: object) -> None:
    text = f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()
    writer.write(f"{len(text):x}\r\n".encode() + text + b"\r\n")
    await writer.drain()


@contextmanager
def running(server: Server) -> Iterator[Server]:
    """Serve on a port of this machine until the end."""
    loop = asyncio.new_event_loop()
    listening = loop.run_until_complete(asyncio.start_server(server.serve, "127.0.0.1", 0, limit=2**22))
    server.port = listening.sockets[0].getsockname()[1]
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listening.close()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
