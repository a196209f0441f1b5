"""A fault campaign: real servers under load, on SQLite or etcd, that are killed, stopped, cut off and starved, while
what clients are told is recorded and judged. `python -m faults --help`; docs/faults.md."""
