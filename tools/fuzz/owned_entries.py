"""managedFields as clients write them: made up, edited, patched."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

Object = dict[str, Any]
PAST = ("2001-01-01T00:00:00Z", "2002-02-02T02:02:02Z", "2003-03-03T00:00:00Z")
APPLIERS = ("m1", "m2", "m3", "kubectl")
ODD_NAMES = ("a/b", "ä", "x" * 128, "x" * 129, "a\tb", " ", "before-first-apply", "ancient-changes")


class Entries:
    """Draws managedFields; `api_version` is that of made-up entries."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.api_version = ""

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def some(self) -> list[Object]:
        """An entry of an applier and one of an updater."""
        fields: Object = self.rng.choice(
            ({"f:spec": {}}, {"f:spec": {"f:a": {}}}, {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}})
        )
        entry = {
            "manager": "m1",
            "operation": "Apply",
            "apiVersion": self.api_version,
            "time": PAST[0],
            "fieldsType": "FieldsV1",
        }
        return [{**entry, "fieldsV1": fields}, {**entry, "manager": "u1", "operation": "Update", "fieldsV1": fields}]

    def edited(self, entries: list[Object]) -> Any:
        """managedFields that a client changed."""
        entries = copy.deepcopy(entries)
        at, draw = self.rng.randrange(len(entries)), self.rng.randint(0, 13)
        entry = entries[at]
        if draw == 0:
            return entries[:at] + entries[at + 1 :]
        if draw == 1:
            return [*entries, {**entry, "manager": self.rng.choice(APPLIERS)}]
        if draw == 2:
            entry["operation"] = self.rng.choice(("Apply", "Update", "Odd", ""))
        elif draw == 3:
            entry.pop(self.rng.choice(sorted(entry)))
        elif draw == 4:
            entry["fieldsType"] = self.rng.choice(("FieldsV2", "", None))
        elif draw == 5:
            entry["fieldsV1"] = self.rng.choice(
                ({}, {"f:spec": {}}, {"x": {}}, {"k:{": {}}, None, {"f:a": 1}, {"i:0": {}}, {".": {}})
            )
        elif draw == 6:
            entry["apiVersion"] = self.rng.choice(("v1", "fuzz.example.com/v9", "other/v1", ""))
        elif draw == 7:
            entry["time"] = self.rng.choice((*PAST, None, "x", "2020-01-01T00:00:00+02:00", "2020-01-01T00:00:00.5Z"))
        elif draw == 8:
            entry["subresource"] = self.rng.choice(("status", "scale", "", "odd"))
        elif draw == 9:
            entry["manager"] = self.rng.choice((*ODD_NAMES, ""))
        elif draw == 10:
            self.rng.shuffle(entries)
        elif draw == 11:
            return [*entries, {}]
        else:
            self._edit_fields(entry.get("fieldsV1"))
        return entries

    def _edit_fields(self, node: Any) -> None:
        """Take some fields out of a set, or put some in."""
        while isinstance(node, dict) and node and self.chance(0.7):
            key = self.rng.choice(sorted(node))
            if self.chance(0.3):
                del node[key]
                return
            node = node[key]
        if isinstance(node, dict):
            node[self.rng.choice(("f:a", "f:b", ".", "f:zz", 'v:"x"', 'k:{"name":"x"}', "i:0", "v:1"))] = {}

    def operation(self, count: int) -> Object:
        """An operation of a JSON patch on as many entries."""
        path = "/metadata/managedFields"
        at = self.rng.randrange(max(count, 1))
        options: tuple[Object, ...] = (
            {"op": "replace", "path": path, "value": self.rng.choice(([], [{}], None))},
            {"op": "remove", "path": path},
            {"op": "remove", "path": f"{path}/{at}"},
            {"op": "replace", "path": f"{path}/{at}/manager", "value": "m1"},
            {"op": "replace", "path": f"{path}/{at}/operation", "value": "Apply"},
            {"op": "replace", "path": f"{path}/{at}/fieldsV1", "value": {"f:spec": {"f:a": {}}}},
            {"op": "add", "path": f"{path}/-", "value": self.some()[0]},
        )
        return self.rng.choice(options)
