"""Serve the page to browsers until Ctrl-C or SIGTERM."""

from __future__ import annotations

import ipaddress
import secrets
import socket
import webbrowser
from typing import Final

import uvicorn

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.planner.commands.page.application import application
from fleetplan.planner.commands.page.messages import Settings
from fleetplan.planner.commands.page.session import Session
from fleetplan.planner.commands.terminal import echo

TOKEN_BYTES: Final = 24
"""Random bytes of a token: 192 bits cannot be guessed."""

GRACE_S: Final = 3
"""Time for open requests to finish when the server ends. [s]"""


def serve_page(
    settings: Settings, first: tuple[tuple[str, ...], tuple[str, ...]], host: str, port: int, *, show: bool
) -> None:
    """Serve the page of a fleet file, and plan the fleet first.

    Parameters
    ----------
    settings : Settings
        Fleet file and limits.
    first : tuple
        Scenarios and assignments of the first plan.
    host : str
        Address or name to listen on.
    port : int
        Port; 0 selects a free one.
    show : bool
        Whether to open the page in the browser of this machine.

    Raises
    ------
    InputError
        The server cannot listen there.
    """
    listener = _listener(host, port)
    token = secrets.token_urlsafe(TOKEN_BYTES)
    session = Session(settings)
    try:
        session.ask(*first, "the file as it is" if first == ((), ()) else ", ".join([*first[0], *first[1]]))
        config = uvicorn.Config(
            application(session, token, host),
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            timeout_graceful_shutdown=GRACE_S,
        )
        address = f"http://{_shown(host)}:{listener.getsockname()[1]}/{token}/"
        echo(address)
        echo("Open this address in a browser. Whoever knows it can use the page. Ctrl-C ends it.", err=True)
        if show:
            webbrowser.open(address)
        uvicorn.Server(config).run(sockets=[listener])
    except KeyboardInterrupt:
        # Ctrl-C and SIGTERM are the regular ends of this command.
        pass
    finally:
        session.close()
        listener.close()


def _listener(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        found = socket.socket(family, kind, protocol)
        try:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(address)
            # From here on, connections of browsers queue until they are answered.
            found.listen()
        except OSError:
            found.close()
            raise
    except (OSError, UnicodeError) as error:
        message = f"cannot listen here: {getattr(error, 'strerror', None) or error}"
        hint = "use --host 127.0.0.1 for this machine and --port 0 for a free port"
        raise InputError([Issue(f"--host {host} --port {port}", 0, 0, "", message, hint)]) from error
    return found


def _shown(host: str) -> str:
    """Return the host in the syntax of a URL."""
    try:
        return f"[{host}]" if ipaddress.ip_address(host).version == 6 else host
    except ValueError:
        return host
