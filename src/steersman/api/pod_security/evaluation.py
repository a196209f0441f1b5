"""Which checks a level has in a version, and what they say of a Pod.

Source: pod-security-admission `policy/registry.go`, and the versions in `policy/check_*.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from steersman.api.pod_security import baseline, restricted
from steersman.api.pod_security.levels import BASELINE, PRIVILEGED, LevelVersion
from steersman.api.pod_security.parts import Check, Object, Violation
from steersman.api.pod_security.restricted import unless_own_users, unless_windows

NEWEST = 37
"""The minor version of the standards' last change; later ones are the same."""

_SYSCTLS = (
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
)
_SYSCTLS_27 = (*_SYSCTLS, "net.ipv4.ip_local_reserved_ports")
_SYSCTLS_29 = (
    *_SYSCTLS_27,
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
)
_SYSCTLS_32 = (*_SYSCTLS_29, "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")
_SYSCTLS_37 = (*_SYSCTLS_32, "net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_notsent_lowat")
_SE_LINUX = ("container_t", "container_init_t", "container_kvm_t")

# A check's id, and its forms by the minor version from which on each holds. Checks are made in the order of the ids.
_Forms = Mapping[str, Mapping[int, Check]]
_BASELINE: _Forms = {
    "appArmorProfile": {0: baseline.app_armor_profile},
    "capabilities_baseline": {0: baseline.capabilities},
    "hostNamespaces": {0: baseline.host_namespaces},
    "hostPathVolumes": {0: baseline.host_path_volumes},
    "hostPorts": {0: baseline.host_ports},
    "hostProbesAndHostLifecycle": {34: baseline.handler_hosts},
    "privileged": {0: baseline.privileged},
    "procMount": {0: baseline.proc_mount, 35: unless_own_users(baseline.proc_mount)},
    "seLinuxOptions": {
        0: baseline.se_linux_options(*_SE_LINUX),
        31: baseline.se_linux_options(*_SE_LINUX, "container_engine_t"),
    },
    "seccompProfile_baseline": {0: baseline.seccomp_annotations, 19: baseline.seccomp_profile},
    "sysctls": {
        0: baseline.sysctls(*_SYSCTLS),
        27: baseline.sysctls(*_SYSCTLS_27),
        29: baseline.sysctls(*_SYSCTLS_29),
        32: baseline.sysctls(*_SYSCTLS_32),
        NEWEST: baseline.sysctls(*_SYSCTLS_37),
    },
    "windowsHostProcess": {0: baseline.windows_host_process},
}
_RESTRICTED: _Forms = {
    "allowPrivilegeEscalation": {
        8: restricted.privilege_escalation,
        25: unless_windows(restricted.privilege_escalation),
    },
    "capabilities_restricted": {22: restricted.capabilities, 25: unless_windows(restricted.capabilities)},
    "procMount_restricted": {35: baseline.proc_mount},
    "restrictedVolumes": {0: restricted.volume_types},
    "runAsNonRoot": {0: restricted.run_as_non_root, 35: unless_own_users(restricted.run_as_non_root)},
    "runAsUser": {23: restricted.run_as_user, 35: unless_own_users(restricted.run_as_user)},
    "seccompProfile_restricted": {19: restricted.seccomp_required, 25: unless_windows(restricted.seccomp_required)},
}
# What a check of the restricted level stands in for.
_INSTEAD_OF = {
    "capabilities_restricted": "capabilities_baseline",
    "procMount_restricted": "procMount",
    "restrictedVolumes": "hostPathVolumes",
    "seccompProfile_restricted": "seccompProfile_baseline",
}


def evaluate(standard: LevelVersion, metadata: Object, spec: Object) -> list[Violation]:
    """What a Pod violates of a level in a version: its metadata and spec, with their defaults; nothing if it may be."""
    minor = NEWEST if standard.minor is None else min(standard.minor, NEWEST)
    found = (check(metadata, spec) for check in _checks(standard.level, minor))
    return [violation for violation in found if violation is not None]


def described(violations: Iterable[Violation]) -> str:
    """All of it, for the one who wrote the Pod."""
    return ", ".join(map(str, violations))


def reasons(violations: Iterable[Violation]) -> str:
    """In few words, for the one who looks at many Pods."""
    return ", ".join(violation.reason for violation in violations)


@cache
def _checks(level: str, minor: int) -> tuple[Check, ...]:
    if level == PRIVILEGED:
        return ()
    base = _at(_BASELINE, minor)
    if level == BASELINE:
        return tuple(base.values())
    further = _at(_RESTRICTED, minor)
    replaced = {_INSTEAD_OF[name] for name in further if name in _INSTEAD_OF}
    return (*(check for name, check in base.items() if name not in replaced), *further.values())


def _at(forms: _Forms, minor: int) -> dict[str, Check]:
    """Each check as it is in a version, without those that are not yet."""
    return {
        name: each[max(held)] for name, each in forms.items() if (held := [since for since in each if since <= minor])
    }
