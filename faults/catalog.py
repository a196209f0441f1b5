"""All faults, and how often each is chosen where the plan is left to chance."""

from faults import inject_etcd
from faults.inject import CATALOG, Skipped

ON_SQLITE = {
    "kill-server": 6,
    "stop-server": 2,
    "pause-server": 2,
    "disturb-clients": 4,
    "full-disk": 3,
    "slow-fsync": 2,
    "clock-jump": 2,
    "pause-candidate": 1,
    "kill-candidate": 1,
    "kill-operator": 1,
}
ON_ETCD = {
    **{name: each for name, each in ON_SQLITE.items() if name not in ("full-disk", "slow-fsync")},
    "kill-all-servers": 1,
    "kill-member": 4,
    "kill-all-members": 1,
    "pause-member": 3,
    "stutter-member": 3,
    "disturb-etcd": 5,
    "isolate-member": 4,
    "disturb-members": 3,
    "compact": 3,
    "compact-behind": 3,
    "defragment": 2,
    "move-leader": 2,
    "replace-member": 2,
    "full-disk-of-member": 2,
}
"""In proportion to each other."""

__all__ = ["CATALOG", "ON_ETCD", "ON_SQLITE", "Skipped", "inject_etcd"]
