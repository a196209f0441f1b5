"""Durations as kubectl shows ages: 5s, 3m12s, 7h, 2d, 1y20d.

Source: apimachinery `pkg/util/duration/duration.go` (HumanDuration).
"""

from __future__ import annotations

from datetime import UTC, datetime


def human_duration(seconds: float) -> str:
    """An age in the coarsest form that still tells something; small negative ones (clock skew) count as 0s."""
    total = int(seconds)
    if total < -1:
        return "<invalid>"
    if total < 0:
        return "0s"
    if total < 60 * 2:
        return f"{total}s"
    minutes = total // 60
    if minutes < 10:
        return f"{minutes}m{total % 60}s" if total % 60 else f"{minutes}m"
    if minutes < 60 * 3:
        return f"{minutes}m"
    hours = total // 3600
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if hours < 24 * 8:
        return f"{hours // 24}d{hours % 24}h" if hours % 24 else f"{hours // 24}d"
    if hours < 24 * 365 * 2:
        return f"{hours // 24}d"
    days = hours // 24
    if hours < 24 * 365 * 8:
        return f"{days // 365}y{days % 365}d" if days % 365 else f"{days // 365}y"
    return f"{days // 365}y"


def age(timestamp: object, now: float) -> str:
    """The age of an RFC 3339 timestamp at `now` (seconds since 1970); `<unknown>` without one."""
    if not isinstance(timestamp, str) or not timestamp:
        return "<unknown>"
    try:
        then = datetime.fromisoformat(timestamp)
    except ValueError:
        return "<invalid>"
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return human_duration(now - then.timestamp())
