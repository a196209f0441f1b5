"""A server that is loaded before it is called: envtest starts etcd first, and waits for it.

The stand-in for etcd keeps a process that has loaded the server and waits. The one for kube-apiserver hands its call
over, with all that belongs to a process: arguments, environment, directory, and the three streams. Then it does
nothing but wait for the end, pass on signals, and end as the server did. Whichever of both is killed, the other one
goes too. A server that stood by is used once; the next call has one loaded for it.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NoReturn

NEEDED = ("steersman.envtest.apiserver", "steersman.controlplane.command", "uvloop")
"""What a server cannot start without."""

SOON = (
    "steersman.apiserver.authn.signing_keys",
    "steersman.api.core.namespace",
    "steersman.api.apiextensions",
    "steersman.apiserver.crd.controller",
    "steersman.api.admissionregistration.webhook_configuration",
    "steersman.apiserver.admission.webhooks.mutating",
    "steersman.apiserver.admission.webhooks.validating",
)
"""What tests of operators will need, too."""

_TAKEN = b"."
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Standby:
    """For the stand-in for etcd: keeps a server loaded, and gives it the call that comes."""

    def __init__(self, directory: str) -> None:
        """Raises OSError when the directory is no place for a socket: its path is too long, for one."""
        self.path = os.path.join(directory, "steersman.sock")
        with suppress(FileNotFoundError):
            os.unlink(self.path)
        self.listener = socket.socket(socket.AF_UNIX)
        try:
            before = os.umask(0o177)
            try:
                self.listener.bind(self.path)
            finally:
                os.umask(before)
            self.listener.listen()
        except BaseException:
            self.listener.close()
            raise
        self._waiting: socket.socket | None = None
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how they ended

    def load(self) -> None:
        """Have a server loaded. Raises OSError when there can be no process for it."""
        ours, theirs = socket.socketpair()
        if not os.fork():
            ours.close()
            self.listener.close()
            _leave(lambda: _stand_by(theirs))
        theirs.close()
        self._waiting = ours

    def hand_over(self) -> None:
        """Give a call that has come to a loaded server. The caller finds its connection closed if there is none."""
        with suppress(OSError), self.listener.accept()[0] as connection:
            if self._waiting is None or not _give(self._waiting, connection):
                self.load()
                assert self._waiting is not None
                _give(self._waiting, connection)
            self._waiting.close()
            self._waiting = None

    def close(self) -> None:
        self.listener.close()
        with suppress(OSError):
            os.unlink(self.path)


def _give(server: socket.socket, connection: socket.socket) -> bool:
    try:
        socket.send_fds(server, [b"."], [connection.fileno()])
    except OSError:
        return False
    return True


def _leave(run: Callable[[], int]) -> NoReturn:
    """End this process with what `run` gives, without what its parent would do at its end."""
    status = 1
    try:
        status = run()
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _stand_by(channel: socket.socket) -> int:
    """Load, wait for a call, and be its server. The call is taken while all is being loaded."""
    for number in (*_SIGNALS, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    waiting = _Waiting(channel)
    waiting.start()
    gc.disable()
    for name in NEEDED:
        with suppress(ImportError):  # uvloop is not everywhere
            importlib.import_module(name)
    for _ in prepare():
        if waiting.called.is_set():
            break
    gc.freeze()  # what is loaded stays
    gc.enable()
    waiting.taken.wait()
    if waiting.connection is None:
        return 1
    from steersman.envtest import apiserver

    status = 1
    try:
        status = apiserver.serve(waiting.arguments, waiting.listener)
    finally:
        sys.stdout.flush()
        with suppress(OSError):
            waiting.connection.sendall(bytes([status]))
    return status


def prepare() -> Iterator[None]:
    """Load what tests of operators will need, piece by piece, while there is nothing else to do: until the call comes,
    and once the server is ready, for envtest looks at it ten times a second."""
    for name in SOON:
        importlib.import_module(name)
        yield
    from steersman.api import kinds

    kinds.protobuf_encoder()
    yield
    kinds.schemas()
    yield


class _Waiting(threading.Thread):
    """Waits for the call, takes it, and does to this process what is done to the caller. What nobody calls ends."""

    def __init__(self, channel: socket.socket) -> None:
        super().__init__(name="standby", daemon=True)
        self._channel = channel
        self.called = threading.Event()
        self.taken = threading.Event()
        self.connection: socket.socket | None = None
        self.arguments: Sequence[str] = ()
        self.listener: socket.socket | None = None

    def run(self) -> None:
        try:
            _, received, _, _ = socket.recv_fds(self._channel, 1, 1)
            self._channel.close()
            if not received:
                os._exit(0)
            self.called.set()
            connection = socket.socket(fileno=received[0])
            self.arguments, self.listener = _become(connection)
            connection.sendall(_TAKEN)
            self.connection = connection
        finally:
            self.taken.set()
        _obey(connection)


def _become(connection: socket.socket) -> tuple[Sequence[str], socket.socket | None]:
    """Take over the caller's place in the system; gives its arguments, and the socket that it listens at."""
    head, given, _, _ = socket.recv_fds(connection, 8, 4)
    streams, listening = given[:3], given[3:]
    length = int.from_bytes(head, "big")
    content = bytearray()
    while len(content) < length or not length:
        piece = connection.recv(length - len(content))
        if not piece:
            raise SystemExit(1)  # it was killed meanwhile
        content += piece
    call = json.loads(content)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(call["environment"])
    os.umask(call["umask"])
    os.chdir(call["directory"])
    time.tzset()
    arguments: list[str] = call["arguments"]
    sys.argv[1:] = ["kube-apiserver", *arguments]
    return arguments, socket.socket(fileno=listening[0]) if listening else None


def _obey(connection: socket.socket) -> None:
    """Do to this process what was done to the caller: signals come as bytes, the end as SIGKILL does."""
    with suppress(OSError):
        while received := connection.recv(1):
            os.kill(os.getpid(), received[0])
    os.kill(os.getpid(), signal.SIGKILL)


def call(path: str, arguments: Sequence[str], listener: socket.socket | None) -> int | None:
    """For the stand-in for kube-apiserver: let a loaded server run in this process's place; gives its exit status.

    The server takes the `listener` over, too. None when there is no server at that path, and nothing has happened.
    """
    try:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(path)
    except OSError:
        return None
    with connection:
        try:
            content = json.dumps(_call(arguments)).encode()
            own = [0, 1, 2] if listener is None else [0, 1, 2, listener.fileno()]
            socket.send_fds(connection, [len(content).to_bytes(8, "big")], own)
            connection.sendall(content)
            taken = connection.recv(1)
        except OSError:
            return None
        if not taken:
            return None
        if listener is not None:
            listener.close()
        return _await_end(connection)


def _await_end(connection: socket.socket) -> int:
    def tell(number: int, frame: object) -> None:
        with suppress(OSError):
            connection.sendall(bytes([number]))

    for number in _SIGNALS:
        signal.signal(number, tell)
    with suppress(OSError):
        if ended := connection.recv(1):
            return ended[0]
    return 1


def _call(arguments: Sequence[str]) -> dict[str, Any]:
    umask = os.umask(0o077)
    os.umask(umask)
    return {
        "arguments": [*arguments],
        "environment": dict(os.environ),
        "directory": os.getcwd(),
        "umask": umask,
    }
