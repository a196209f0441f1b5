"""The stand-in for kube-apiserver: `steersman serve`, called as kube-apiserver is.

As there, there are no controllers: nothing collects garbage, and deleted namespaces stay. `STEERSMAN_CONTROLLERS=*`
lets them run (names as for `steersman serve --controllers`).
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from steersman.envtest import place, standby
from steersman.envtest.flags import FlagError, flags, known_flags
from steersman.net.sockets import bound

if TYPE_CHECKING:
    import argparse

CONTROLLERS = "event-ttl-controller"
"""What a kube-apiserver does by itself, although it is a controller here."""

_ELSEWHERE = frozenset({"Node", "ABAC"})
"""Modes of authorization that there are not here: where there are no nodes, they allow nothing."""


def main(arguments: Sequence[str]) -> int:
    """Serve until SIGTERM or SIGINT, in a process that stands by if there is one. Returns the exit status."""
    try:
        given = dict(flags(arguments, *known_flags("kube-apiserver")))
    except FlagError:
        return serve(arguments)
    listener = _listen(given)
    if servers := given.get("etcd-servers"):
        found = place.ask(servers)
        if found is not None and found.standby is not None:
            status = standby.call(found.standby, arguments, listener)
            if status is not None:
                return status
    return serve(arguments, listener)


def serve(arguments: Sequence[str], listener: socket.socket | None = None) -> int:
    """Serve in this process until SIGTERM or SIGINT; a `listener` may listen where the arguments say already.

    Returns the exit status.
    """
    upstream = known_flags("kube-apiserver")
    if any(argument.partition("=")[0] in ("--version", "-version") for argument in arguments):
        from steersman.apiserver.endpoints.health import KUBERNETES

        print(f"Kubernetes v{'.'.join(map(str, KUBERNETES))}")
        return 0
    try:
        given = list(flags(arguments, upstream.names, upstream.switches))
        storage = list(_storage(dict(given)))
    except FlagError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    from steersman._util.commandline import Parser
    from steersman.controlplane import command  # deferred, for most calls end before this

    parser: argparse.ArgumentParser = Parser(prog="kube-apiserver")
    commands = parser.add_subparsers(dest="command")
    command.add_parser(commands)
    options = parser.parse_args(["serve", *_serving(given, commands.choices["serve"]), *storage])
    options.listener, options.meanwhile = listener, standby.prepare()
    return command.run(options)


def _listen(given: Mapping[str, str]) -> socket.socket | None:
    """Listen where the flags say, before anything else is done: who asks whether the server is ready then waits for the
    answer. None when that cannot be: the server itself will say why."""
    try:
        address, port = given["bind-address"], int(given["secure-port"])
        return bound(socket.AF_INET6 if ":" in address else socket.AF_INET, (address, port))
    except (KeyError, ValueError, OverflowError, OSError):
        return None


def _serving(given: Sequence[tuple[str, str]], parser: argparse.ArgumentParser) -> Iterator[str]:
    """The flags of `steersman serve` for those of kube-apiserver; those that change nothing here are left out."""
    served = {option.removeprefix("--") for action in parser._actions for option in action.option_strings}
    for name, value in given:
        if name == "authorization-mode":
            modes = [mode for mode in value.split(",") if mode not in _ELSEWHERE]
            yield f"--{name}={','.join(modes) or 'RBAC'}"
        elif name == "v":
            yield f"--verbosity={value}"
        elif name in served:
            yield f"--{name}={value}"
    last = dict(given)
    certificate = os.path.join(last.get("cert-dir", "/var/run/kubernetes"), "apiserver.crt")
    if "tls-cert-file" not in last and os.path.isfile(certificate):
        yield f"--tls-cert-file={certificate}"
        yield f"--tls-private-key-file={certificate.removesuffix('crt')}key"
    if not any(name == "authorization-mode" or name == "authorization-config" for name, _ in given):
        yield "--authorization-mode=AlwaysAllow"
    yield f"--controllers={os.environ.get('STEERSMAN_CONTROLLERS', CONTROLLERS)}"


def _storage(given: Mapping[str, str]) -> Iterator[str]:
    """Where the data are kept: as long as etcd's would be. Raises FlagError without a stand-in for etcd."""
    servers = given.get("etcd-servers")
    if not servers:
        raise FlagError("--etcd-servers must be specified")
    found = place.ask(servers)
    if found is None:
        raise FlagError(f"{servers} is not the etcd that stands beside this kube-apiserver: both come together")
    yield f"--store=sqlite:///{found.directory}/steersman.db"
    yield "--unsafe-no-fsync"
