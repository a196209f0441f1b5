"""Flags of `steersman serve` about admission plugins, named as kube-apiserver's; plugins of other packages.

Source: apiserver `pkg/server/options/admission.go`.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from steersman._util.dataclass import dataclass
from steersman.apiserver.admission.chain import Plugin, Validator
from steersman.apiserver.admission.names import HERE, problem

ENTRY_POINTS = "steersman.admission"
log = logging.getLogger("steersman")


@dataclass(frozen=True, slots=True)
class AdmissionPlugins:
    """Which plugins run beside those that run by default, which do not, and those of other packages."""

    enabled: frozenset[str]
    disabled: frozenset[str]
    own: Sequence[Plugin | Validator]


def add_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("admission").add_argument
    add("--disable-admission-plugins", default="", metavar="NAMES", help="plugins that are not to run (default: none)")
    add(
        "--enable-admission-plugins",
        default="",
        metavar="NAMES",
        help="plugins to run beside the default ones (default: none)",
    )


def configuration(options: argparse.Namespace) -> AdmissionPlugins:
    """What the flags say, in the words of kube-apiserver. Raises ValueError with one line on what is wrong."""
    enabled, disabled = (_names(text) for text in (options.enable_admission_plugins, options.disable_admission_plugins))
    own = installed()
    names = {plugin.name for plugin in own}
    if text := problem(enabled, disabled, names):
        raise ValueError(text)
    for name in enabled:
        if name not in HERE and name not in names:
            log.warning("an admission plugin is not there to be switched on", extra={"plugin": name})
    return AdmissionPlugins(frozenset(enabled), frozenset(disabled), own)


def installed() -> list[Plugin | Validator]:
    """The plugins that installed packages offer as entry points of the group `steersman.admission`.

    An entry point is a plugin: a function that `mutating` or `validating` has made one, or an object with `name` and
    with `admit` or `validate` (and `active`). Raises ValueError for one that is none.
    """
    if not _offered():
        return []
    from importlib.metadata import entry_points

    found = []
    for point in entry_points(group=ENTRY_POINTS):
        try:
            plugin = point.load()
        except Exception as error:
            raise ValueError(f"the admission plugin {point.name} ({point.value}) cannot be loaded: {error}") from error
        if not isinstance(plugin, (Plugin, Validator)):
            raise ValueError(f"{point.value} ({ENTRY_POINTS}: {point.name}) is no admission plugin")
        found.append(plugin)
    return found


def _offered() -> bool:
    """Whether any package offers plugins. To load what reads entry points takes longer than to look at all of them."""
    wanted = ENTRY_POINTS.encode()
    for folder in sys.path:
        with suppress(OSError):
            for name in os.listdir(folder or "."):
                if name.endswith((".dist-info", ".egg-info")):
                    with suppress(OSError), open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:
                        if wanted in file.read():
                            return True
    return False


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
