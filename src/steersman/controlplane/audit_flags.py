"""Flags of `steersman serve` about audit, named as kube-apiserver's.

Source: apiserver `pkg/server/options/audit.go`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from steersman._util.goduration import parse_nanoseconds

if TYPE_CHECKING:
    from steersman.apiserver.audit.auditor import Auditor
    from steersman.apiserver.audit.backends import Backend, BatchConfig, RemoteSink, Sink, Truncation
    from steersman.apiserver.audit.policy import Policy
    from steersman.apiserver.webhooks.kubeconfig import RemoteService

_MODES = ("batch", "blocking", "blocking-strict")
_PLUGINS = {"log": ("blocking", 1, False), "webhook": ("batch", 400, True)}
_VERSION = "audit.k8s.io/v1"


def add_flags(parser: argparse.ArgumentParser, boolean: Callable[[str], bool]) -> None:
    """The flags; `boolean` reads true and false."""
    group = parser.add_argument_group("audit")
    add = group.add_argument
    add(
        "--audit-policy-file",
        metavar="FILE",
        help="a Policy (audit.k8s.io/v1): which requests are recorded, and how (default: none)",
    )
    add(
        "--audit-log-path",
        metavar="FILE",
        help="record them there, one JSON object a line; - is stdout (default: nowhere)",
    )
    add(
        "--audit-log-maxsize",
        type=int,
        default=100,
        metavar="MB",
        help="the size after which the log is rotated; 0: never",
    )
    add("--audit-log-maxage", type=int, default=366, metavar="DAYS", help="how long old logs are kept; 0: for ever")
    add("--audit-log-maxbackup", type=int, default=100, metavar="N", help="old logs that are kept; 0: all")
    add(
        "--audit-log-compress",
        type=boolean,
        nargs="?",
        const=True,
        default=False,
        metavar="BOOL",
        help="pack old logs (default: false)",
    )
    add("--audit-log-format", choices=("json",), default="json", help="the form of the log's lines")
    add(
        "--audit-webhook-config-file",
        metavar="FILE",
        help="a kubeconfig: record them at this webhook (default: nowhere)",
    )
    add(
        "--audit-webhook-initial-backoff",
        type=_seconds,
        default="10s",
        metavar="TIME",
        help="how long it is until what failed is tried again",
    )
    for plugin, (mode, size, throttle) in _PLUGINS.items():
        _add_backend_flags(group, boolean, plugin, mode, size, throttle)


def _add_backend_flags(
    group: argparse._ArgumentGroup,
    boolean: Callable[[str], bool],
    plugin: str,
    mode: str,
    size: int,
    throttle: bool,
) -> None:
    add = partial(_add, group, f"--audit-{plugin}")
    add("mode", default=mode, choices=_MODES, help="whether requests wait for their events to be written")
    add("version", default=_VERSION, choices=(_VERSION,), help="the version of the events")
    add("batch-buffer-size", type=int, default=10_000, metavar="N", help="events that may wait; more are lost")
    add("batch-max-size", type=int, default=size, metavar="N", help="events in a batch")
    add("batch-max-wait", type=_seconds, default="30s", metavar="TIME", help="how long a batch waits to become full")
    add("batch-throttle-enable", type=boolean, default=throttle, metavar="BOOL", help="limit the rate of batches")
    add("batch-throttle-qps", type=float, default=10.0, metavar="N", help="batches a second")
    add("batch-throttle-burst", type=int, default=15, metavar="N", help="batches at once")
    add(
        "truncate-enabled",
        type=boolean,
        default=False,
        metavar="BOOL",
        help="cut events and batches that are too large (default: false)",
    )
    add(
        "truncate-max-batch-size",
        type=int,
        default=10 * 1024 * 1024,
        metavar="BYTES",
        help="the size of a batch that is too large",
    )
    add(
        "truncate-max-event-size",
        type=int,
        default=100 * 1024,
        metavar="BYTES",
        help="the size of an event that is too large",
    )


def _add(group: argparse._ArgumentGroup, prefix: str, name: str, **options: object) -> None:
    group.add_argument(f"{prefix}-{name}", **options)  # type: ignore[arg-type]


def configuration(options: argparse.Namespace) -> Callable[[], Auditor] | None:
    """What the flags say; None without a policy or a place for events. Raises ValueError with one line."""
    _check(options)
    if not options.audit_policy_file:
        return None
    from steersman.apiserver.audit.policy import PolicyError, parse_policy

    path = options.audit_policy_file
    try:
        policy = parse_policy(Path(path).read_bytes())
    except OSError as error:
        raise ValueError(f"loading audit policy file: failed to read file path {path}: {error.strerror}") from None
    except PolicyError as error:
        raise ValueError(f"loading audit policy file: {error}: from file {path}") from None
    if not options.audit_log_path and not options.audit_webhook_config_file:
        return None
    target = _service(options.audit_webhook_config_file) if options.audit_webhook_config_file else None
    log = _log(options) if options.audit_log_path else None
    return partial(_auditor, policy, options, log, target)


def _check(options: argparse.Namespace) -> None:
    if options.audit_log_path:
        for name in ("maxage", "maxbackup", "maxsize"):
            value = getattr(options, f"audit_log_{name}")
            if value < 0:
                raise ValueError(f"--audit-log-{name} {value} can't be a negative number")
        _check_backend("log", options)
    if options.audit_webhook_config_file:
        _check_backend("webhook", options)


def _check_backend(plugin: str, options: argparse.Namespace) -> None:
    def of(name: str) -> int:
        value: int = getattr(options, f"audit_{plugin}_{name}")
        return value

    if getattr(options, f"audit_{plugin}_mode") == "batch":
        positive = [("batch_buffer_size", "buffer size"), ("batch_max_size", "max batch size")]
        if of("batch_throttle_enable"):
            positive += [("batch_throttle_qps", "throttle QPS"), ("batch_throttle_burst", "throttle burst")]
        for name, words in positive:
            if of(name) <= 0:
                raise ValueError(f"invalid audit batch {plugin} {words} {of(name)}, must be a positive number")
    event, batch = of("truncate_max_event_size"), of("truncate_max_batch_size")
    if event <= 0:
        raise ValueError(f"invalid audit truncate {plugin} max event size {event}, must be a positive number")
    if batch < event:
        why = f"must be greater than max event size ({event})"
        raise ValueError(f"invalid audit truncate {plugin} max batch size {batch}, {why}")


def _log(options: argparse.Namespace) -> Sink:
    from steersman.apiserver.audit.files import AuditFile, AuditStdout, Rotation

    if options.audit_log_path == "-":
        return AuditStdout()
    rotation = Rotation(
        options.audit_log_maxsize, options.audit_log_maxage, options.audit_log_maxbackup, options.audit_log_compress
    )
    try:
        return AuditFile(Path(options.audit_log_path), rotation)
    except OSError as error:
        raise ValueError(f"--audit-log-path {options.audit_log_path} cannot be written: {error.strerror}") from None


def _service(path: str) -> RemoteService:
    from steersman.apiserver.webhooks.kubeconfig import KubeconfigError, load_service

    try:
        return load_service(Path(path))
    except KubeconfigError as error:
        raise ValueError(f"initializing audit webhook: --audit-webhook-config-file {path}: {error}") from None


def _auditor(policy: Policy, options: argparse.Namespace, log: Sink | None, target: RemoteService | None) -> Auditor:
    from steersman.apiserver.audit.auditor import Auditor
    from steersman.apiserver.audit.webhook import AuditWebhook

    backends = []
    if log is not None:
        backends.append(_backend("log", options, log))
    if target is not None:
        backends.append(
            _backend("webhook", options, AuditWebhook(target, backoff=options.audit_webhook_initial_backoff))
        )
    return Auditor(policy, backends)


def _backend(plugin: str, options: argparse.Namespace, sink: Sink | RemoteSink) -> Backend:
    from steersman.apiserver.audit.backends import Batched, Direct

    truncation = _truncation(plugin, options)
    mode = getattr(options, f"audit_{plugin}_mode")
    if mode == "batch":
        return Batched(sink, _batches(plugin, options), truncation)
    return Direct(sink, strict=mode == "blocking-strict", truncation=truncation)


def _batches(plugin: str, options: argparse.Namespace) -> BatchConfig:
    from steersman.apiserver.audit.backends import BatchConfig

    def of(name: str) -> float:
        value: float = getattr(options, f"audit_{plugin}_batch_{name}")
        return value

    return BatchConfig(
        buffer=int(of("buffer_size")),
        size=int(of("max_size")),
        wait=of("max_wait"),
        rate=of("throttle_qps") if of("throttle_enable") else 0.0,
        burst=int(of("throttle_burst")),
    )


def _truncation(plugin: str, options: argparse.Namespace) -> Truncation | None:
    from steersman.apiserver.audit.backends import Truncation

    if not getattr(options, f"audit_{plugin}_truncate_enabled"):
        return None
    return Truncation(
        getattr(options, f"audit_{plugin}_truncate_max_event_size"),
        getattr(options, f"audit_{plugin}_truncate_max_batch_size"),
    )


def _seconds(text: str) -> float:
    nanoseconds = parse_nanoseconds(text)
    if nanoseconds is None or nanoseconds < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration such as 10s")
    return nanoseconds / 1e9
