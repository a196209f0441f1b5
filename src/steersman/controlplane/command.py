"""`steersman serve`: the control plane as a daemon.

Flags are named as kube-apiserver names them where they mean the same.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import secrets
import ssl
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from steersman._util.commandline import explain
from steersman._util.goduration import parse_nanoseconds
from steersman._util.logs import configure
from steersman.apiserver.authn.tokens import StaticTokens, TokenFileError, parse_token_file
from steersman.apiserver.authn.user import UserInfo
from steersman.apiserver.config_files import ConfigFileError
from steersman.apiserver.server import ServerConfig
from steersman.controlplane import (
    admission_flags,
    audit_flags,
    authentication_flags,
    authorization_flags,
    encryption_flags,
    etcd_flags,
    service_account_flags,
)
from steersman.controlplane.controller_names import chosen
from steersman.controlplane.kubeconfig import write_kubeconfig
from steersman.controlplane.plane import ControlPlane
from steersman.net import pki
from steersman.net.loop import new_event_loop, on_signals
from steersman.net.server import ListenError
from steersman.net.tls import server_ssl_context
from steersman.store.history import History
from steersman.store.interface import StoreError
from steersman.store.urls import open_store, root_of

if TYPE_CHECKING:
    from steersman.apiserver.faults import FaultPlan

log = logging.getLogger("steersman")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class UsageError(Exception):
    """What was asked cannot be done; the message says why, and what to do, in one line."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "serve",
        help="run an API server with its controllers",
        usage="%(prog)s [OPTION ...]",
        description="Run an API server with its controllers, until SIGTERM or SIGINT. The first line on stdout, "
        "`serving on URL`, comes when it is ready; the log is on stderr. Options that kube-apiserver has too carry its "
        "names, and mean the same. Loopback, TLS, authentication and RBAC are the default.",
    )
    _add_storage(parser)
    etcd_flags.add_flags(parser)
    encryption_flags.add_flags(parser, _boolean)
    _add_network(parser)
    service_account_flags.add_flags(parser, _boolean)
    authentication_flags.add_flags(parser, _boolean)
    authorization_flags.add_flags(parser)
    admission_flags.add_flags(parser)
    audit_flags.add_flags(parser, _boolean)
    _add_controllers(parser)
    _add_limits(parser)
    _add_logging(parser)
    _add_testing(parser)
    explain(parser, _EXAMPLES, _STATUSES, files=_FILES, environment=_ENVIRONMENT)
    parser.set_defaults(run=run)


def _add_storage(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("storage").add_argument
    add(
        "--store",
        default="memory://",
        metavar="URL",
        help="memory:// | sqlite:///relative.db | sqlite:////absolute.db | etcd://HOST:PORT,HOST:PORT/PREFIX",
    )
    add("--event-ttl", type=_duration, default="1h0m0s", metavar="TIME", help="how long Events are kept")
    add(
        "--quota-backend-bytes",
        type=_count,
        default=0,
        metavar="BYTES",
        help="how much a SQLite database may hold; then writes are refused, deletions are not; 0: as the disk has room",
    )
    add("--history", type=_minutes, default="5", metavar="MINUTES", help="how long old revisions are kept at least")


def _add_network(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("network and TLS").add_argument
    add("--bind-address", default="127.0.0.1", metavar="IP", help="the address to listen on")
    add("--secure-port", type=int, default=6443, metavar="PORT", help="the port to listen on; 0 takes a free one")
    add(
        "--cert-dir",
        default=None,
        metavar="DIR",
        help="where the self-made CA and certificates are kept (default: see files)",
    )
    add("--tls-cert-file", metavar="FILE", help="the server's certificate, PEM (default: a self-made one)")
    add("--tls-private-key-file", metavar="FILE", help="the key of --tls-cert-file")
    add(
        "--shutdown-delay-duration",
        type=_duration,
        default="0s",
        metavar="TIME",
        help="how long it goes on serving after SIGTERM, with /readyz failing, so that others stop sending it requests",
    )
    add("--kubeconfig", metavar="FILE", help="write a kubeconfig for an administrator there, mode 0600 (default: none)")
    add(
        "--service-address",
        type=_service_address,
        action="append",
        default=None,
        metavar="NAMESPACE/NAME=HOST:PORT",
        help="where a Service is reached that a webhook stands behind; may be repeated (default: its EndpointSlices)",
    )


def _add_controllers(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("controllers").add_argument
    add("--controllers", default="*", metavar="NAMES", help="controllers to run: *, names, or -name to leave one out")
    add(
        "--hollow-workloads",
        action="store_true",
        help="let Deployments, StatefulSets, DaemonSets, Jobs and Pods progress, although nothing runs",
    )


def _add_limits(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("limits").add_argument
    add("--max-requests-inflight", type=_count, default=400, metavar="N", help="reads at once; more get 429; 0: any")
    add(
        "--max-mutating-requests-inflight",
        type=_count,
        default=200,
        metavar="N",
        help="writes at once; more get 429; 0: any",
    )
    add(
        "--enable-priority-and-fairness",
        type=_boolean,
        default=True,
        metavar="BOOL",
        help="share both limits out among priority levels, and let requests wait in fair queues",
    )


def _add_logging(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("logging").add_argument
    add("--log-format", choices=("json", "text"), default="text", help="the form of log lines, on stderr")
    add("-v", "--verbosity", type=int, default=0, metavar="N", help="1 and 4 log more")


def _add_testing(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("for tests").add_argument
    add("--insecure-http", action="store_true", help="plain HTTP without authentication, on loopback only")
    add(
        "--unsafe-no-fsync",
        type=_boolean,
        nargs="?",
        const=True,
        default=False,
        metavar="BOOL",
        help="do not wait for the disk: when the machine fails, the last writes are lost (default: false)",
    )
    add(
        "--faults", metavar="FILE", help="a plan (YAML) of what is to go wrong, for tests of clients (default: nothing)"
    )


_EXAMPLES = (
    (
        "a server on a database, and a kubeconfig for it",
        "steersman serve --store sqlite:///cluster.db --kubeconfig cluster.kubeconfig",
    ),
    (
        "in memory, on a free port, with nothing kept on disk but certificates",
        "steersman serve --secure-port 0 --cert-dir certs --kubeconfig test.kubeconfig",
    ),
    (
        "for other machines, with users of one's own",
        "steersman serve --bind-address 0.0.0.0 --store sqlite:////var/lib/steersman/cluster.db "
        "--tls-cert-file tls.crt --tls-private-key-file tls.key --client-ca-file users.crt",
    ),
    (
        "with an audit log of who did what",
        "steersman serve --audit-policy-file policy.yaml --audit-log-path audit.log --audit-log-maxage 30",
    ),
)
_STATUSES = {0: "it was stopped by a signal", 1: "it cannot start, or has failed; stderr says why"}
_FILES = {
    "DATABASE-certs/": "beside the database: the self-made CA, certificates and keys, and the key that signs tokens",
    "~/.local/state/steersman/certs/": "the same for memory://",
    "DATABASE-lock": "keeps two servers from one database",
}
_ENVIRONMENT = {"XDG_STATE_HOME": "in the place of ~/.local/state"}


def run(options: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT. Returns the exit status."""
    configure(options.log_format, options.verbosity)
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            return runner.run(_serve(options))
    except (UsageError, StoreError, ListenError, TokenFileError, ConfigFileError) as error:
        print(f"steersman serve: {error}", file=sys.stderr)
        return 1


async def _serve(options: argparse.Namespace) -> int:
    stopping = asyncio.Event()
    on_signals("SIGTERM", "SIGINT", call=stopping.set)
    token = secrets.token_urlsafe(32)
    try:
        controllers = chosen(options.controllers)
    except ValueError as error:
        raise UsageError(str(error)) from None
    # The store first: what it refuses leaves no certificates behind.
    history = History(seconds=options.history * 60)
    try:
        credentials = etcd_flags.credentials(options)
    except ValueError as error:
        raise UsageError(str(error)) from None
    store = await open_store(
        options.store,
        history=history,
        fsync=not options.unsafe_no_fsync,
        credentials=credentials,
        quota=options.quota_backend_bytes,
    )
    try:
        config, ca = _config(options, token)
    except BaseException:
        await store.close()
        raise
    gc.disable()
    try:
        plane = await ControlPlane.start(
            store, config, controllers=controllers, root_ca=ca, hollow_workloads=options.hollow_workloads
        )
        gc.freeze()  # what has been loaded stays: it need not be looked through time and again
    finally:
        gc.enable()
    try:
        if options.kubeconfig:
            _write_kubeconfig(Path(options.kubeconfig), plane.url, ca, "" if options.insecure_http else token)
        print(f"serving on {plane.url}", flush=True)
        for _ in getattr(options, "meanwhile", ()):
            await asyncio.sleep(0)  # for who asks already
        await stopping.wait()
        stopping.clear()
        if options.shutdown_delay_duration:
            log.info("not ready any more; a second signal ends the waiting")
            await plane.retire(options.shutdown_delay_duration, stopping)
        log.info("stopping")
    finally:
        await plane.stop()
    return 0


def _write_kubeconfig(path: Path, url: str, ca: bytes | None, token: str) -> None:
    try:
        write_kubeconfig(path, url, ca, token)
    except OSError as error:
        raise UsageError(f"--kubeconfig {path} cannot be written: {error.strerror}") from None


def _config(options: argparse.Namespace, token: str) -> tuple[ServerConfig, bytes | None]:
    """The server's configuration, and the CA that clients need."""
    try:
        plugins = admission_flags.configuration(options)
    except ValueError as error:
        raise UsageError(str(error)) from None
    config = ServerConfig(
        host=options.bind_address,
        port=options.secure_port,
        enabled_plugins=plugins.enabled,
        disabled_plugins=plugins.disabled,
        admission_plugins=plugins.own,
        max_reads=options.max_requests_inflight,
        max_writes=options.max_mutating_requests_inflight,
        fairness=options.enable_priority_and_fairness,
        service_addresses=dict(options.service_address or ()),
        event_ttl=options.event_ttl,
        listener=getattr(options, "listener", None),
    )
    config.faults = _faults(options.faults) if options.faults else None
    try:
        config.encryption = encryption_flags.configuration(options, root_of(options.store))
        config.audit = audit_flags.configuration(options)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if options.insecure_http:
        if options.bind_address not in _LOOPBACK:
            raise UsageError("--insecure-http serves loopback only; leave --bind-address out, or use TLS")
        config.insecure = True
        return config, None
    config.tokens = _tokens(options.token_auth_file, token)
    config.tls, ca = _tls(options)
    config.client_certificates = bool(options.client_ca_file)
    try:
        config.authorizers, config.authorization_file = authorization_flags.configuration(options)
        config.service_accounts = service_account_flags.configuration(options, _cert_dir(options))
        own = config.service_accounts.issuers
        config.token_settings, config.anonymous = authentication_flags.configuration(options, own)
        if config.anonymous is True and any(each.mode == "AlwaysAllow" for each in config.authorizers):
            log.warning("where everything is allowed nobody may be anonymous: --anonymous-auth is false")
            config.anonymous = False
    except ValueError as error:
        raise UsageError(str(error)) from None
    return config, ca


def _faults(path: str) -> FaultPlan:
    import yaml

    from steersman.apiserver.faults import parse_plan

    try:
        return parse_plan(yaml.safe_load(_read(path, "--faults")))
    except (yaml.YAMLError, ValueError) as error:
        raise UsageError(f"--faults {path} cannot be used: {' '.join(str(error).split())}") from None


def _tokens(path: str | None, admin: str) -> StaticTokens:
    """The static tokens, and one made for this run's administrator."""
    users: dict[str, UserInfo] = {}
    if path is not None:
        try:
            text = Path(path).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"--token-auth-file {path} cannot be read: {getattr(error, 'strerror', error)}") from None
        users.update(parse_token_file(text, path))
    users[admin] = UserInfo("kubernetes-admin", "", ("system:masters",))
    return StaticTokens(users)


def _tls(options: argparse.Namespace) -> tuple[ssl.SSLContext, bytes]:
    client_ca = _read(options.client_ca_file, "--client-ca-file") if options.client_ca_file else None
    if bool(options.tls_cert_file) != bool(options.tls_private_key_file):
        raise UsageError("--tls-cert-file and --tls-private-key-file go together")
    if options.tls_cert_file:
        cert = _read(options.tls_cert_file, "--tls-cert-file")
        key = _read(options.tls_private_key_file, "--tls-private-key-file")
        ca = cert
    else:
        directory = _cert_dir(options)
        hosts = {options.bind_address, "127.0.0.1", "::1", "localhost", "kubernetes.default.svc"} - {"0.0.0.0", "::"}  # noqa: S104
        try:
            files = pki.load_or_create(directory, sorted(hosts))
        except OSError as error:
            raise UsageError(f"certificates cannot be kept in {directory}: {error.strerror}; see --cert-dir") from None
        cert, key, ca = files.cert, files.key, files.ca.cert
    try:
        context = server_ssl_context(cert, key)
    except (ssl.SSLError, ValueError) as error:
        raise UsageError(
            f"the certificate (--tls-cert-file) or its key (--tls-private-key-file) cannot be used: {error}"
        ) from None
    try:
        return (server_ssl_context(cert, key, client_ca) if client_ca else context), ca
    except (ssl.SSLError, ValueError) as error:
        raise UsageError(f"--client-ca-file {options.client_ca_file} holds no certificate: {error}") from None


def _cert_dir(options: argparse.Namespace) -> Path:
    return Path(options.cert_dir) if options.cert_dir else _default_cert_dir(options.store)


def _default_cert_dir(store: str) -> Path:
    """Beside the database; with the memory store, in the user's state directory."""
    if store.startswith("sqlite:///"):
        path = Path(store.removeprefix("sqlite:///"))
        return path.with_name(f"{path.name}-certs")
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "steersman" / "certs"


def _read(path: str, flag: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{flag} {path} cannot be read: {error.strerror}") from None


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 0 or more")
    return int(text)


def _service_address(text: str) -> tuple[tuple[str, str], tuple[str, int]]:
    service, _, address = text.partition("=")
    namespace, _, name = service.partition("/")
    host, _, port = address.rpartition(":")
    if not (namespace and name and host and port.isascii() and port.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAMESPACE/NAME=HOST:PORT")
    return (namespace, name), (host.strip("[]"), int(port))


def _minutes(text: str) -> float:
    minutes = float(text)
    if not 0 <= minutes < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 0 or more")
    return minutes


def _duration(text: str) -> float:
    nanoseconds = parse_nanoseconds(text)
    if nanoseconds is None or nanoseconds < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration such as 10s")
    return nanoseconds / 1e9


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return text.lower() == "true"
