"""Steps of an interleaving: the next request about one object, drawn from what the object is now."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from .owned_entries import APPLIERS, ODD_NAMES, PAST, Entries
from .owned_kinds import METADATA, Schema
from .owned_values import OTHERS, Values, below
from .values import write
from .wire import UID_OF, VERSION_OF, Ask

Object = dict[str, Any]
UPDATERS = ("", "", "m1", "m2", "u1", "u2", "kubectl-client-side-apply", "kubectl")
AGENTS = ("fuzz/1", "fuzz/1", "kubectl/v1.37 (linux)", "", "/", "a b/c", "x" * 140)
APPLY, JSON, MERGE, STRATEGIC = (
    f"application/{each}"
    for each in ("apply-patch+yaml", "json-patch+json", "merge-patch+json", "strategic-merge-patch+json")
)
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass
class Kind:
    """A resource: its path up to the version, and the schema and subresources of each version."""

    group_path: str
    plural: str
    name: str
    custom: bool
    versions: dict[str, Schema]
    subresources: dict[str, tuple[str, ...]]
    resets: list[str] = field(default_factory=list)

    def collection(self, version: str) -> str:
        return f"{self.group_path}/{version}/namespaces/default/{self.plural}"

    def api_version(self, version: str) -> str:
        return version if self.group_path == "/api" else f"{self.group_path.removeprefix('/apis/')}/{version}"


class Steps:
    """Draws the requests about one object. `live` is what the reference answered last; None: there is none."""

    def __init__(self, rng: Random, kind: Kind, name: str) -> None:
        self.rng = rng
        self.kind = kind
        self.name = name
        self.subject = f"{kind.collection(next(iter(kind.versions)))}/{name}"
        self.live: Object | None = None
        self.configs: dict[str, Object] = {}
        wrong = rng.choice((0.0, 0.0, 0.0, 0.02, 0.06))
        self.values = Values(rng, wrong)
        self.odd = rng.random() < 0.3
        self.entries = Entries(rng)

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def next(self) -> Ask:
        """The next request."""
        self.version = self.rng.choice(list(self.kind.versions))
        self.schema = self.kind.versions[self.version]
        self.entries.api_version = self.kind.api_version(self.version)
        self.path = f"{self.kind.collection(self.version)}/{self.name}"
        if self.live is None:
            return self._create() if self.chance(0.5) else self._apply()
        below = self.kind.subresources[self.version]
        options: list[tuple[Callable[[], Ask], float]] = [
            (self._apply, 40),
            (self._put, 14),
            (self._json_patch, 8),
            (self._merge_patch, 8),
            (self._aged, 8),
            (self._client_side, 4),
            (self._create, 0.7),
            (self._delete, 1.5),
            (self._many, 1),
        ]
        if not self.kind.custom:
            options.append((self._strategic, 10))
        if "status" in below:
            options += [(self._status_write, 9), (self._status_apply, 8)]
        if "scale" in below:
            options += [(self._scale_write, 6), (self._scale_apply, 5)]
        return self.rng.choices([each for each, _ in options], [weight for _, weight in options])[0]()

    def ask(
        self,
        method: str,
        body: Any,
        manager: str,
        *,
        content_type: str = "application/json",
        under: str = "",
        **query: str,
    ) -> Ask:
        """A request on the object (or below it), with the options that go with any write."""
        if manager:
            query["fieldManager"] = manager
        if self.chance(0.05) and self.live is not None:  # else kube-apiserver shows an applied resourceVersion
            query["dryRun"] = "All"
        if self.chance(0.25):
            query["fieldValidation"] = self.rng.choice(("Ignore", "Warn", "Strict"))
        path = self.kind.collection(self.version) if method == "POST" else self.path + under
        agent = self.rng.choice(AGENTS) if self.odd else "fuzz/1"
        text = None if body is None else write(body)
        return Ask(method, path, text, content_type, query, subject=self.subject, agent=agent)

    def updater(self) -> str:
        if self.odd and self.chance(0.15):
            return self.rng.choice(ODD_NAMES)
        return self.rng.choice(UPDATERS)

    def identity(self) -> Object:
        return {"apiVersion": self.kind.api_version(self.version), "kind": self.kind.name}

    def fresh(self) -> Object:
        """An object, or a configuration."""
        body = self.values.value(self.schema)
        meta: Object = {"name": self.name}
        if self.chance(0.4):
            meta |= {key: each for key, each in Values(self.rng).value(METADATA).items() if self.chance(0.5)}
        body = body if isinstance(body, dict) else {"spec": body}
        if self.chance(0.03):
            body[self.rng.choice(("spec", "status", "data", "unknown"))] = self.rng.choice(OTHERS)
        return {**self.identity(), "metadata": meta, **body}

    def current(self) -> Object:
        """What is stored, as seen (or nearly so) in the version of this step."""
        obj = {**copy.deepcopy(self.live or {}), **self.identity()}
        obj["metadata"].pop("deletionTimestamp", None)  # of the reference, and so not the other server's
        return obj

    def _content(self, obj: Object) -> Object:
        return {key: each for key, each in obj.items() if key not in ("apiVersion", "kind", "metadata")}

    def changed(self, obj: Object) -> Object:
        """An object or configuration with a change in the content or in the metadata."""
        if self.chance(0.2):
            kept = {key: each for key, each in obj["metadata"].items() if key not in METADATA["properties"]}
            marked = {key: each for key, each in obj["metadata"].items() if key in METADATA["properties"]}
            return {**obj, "metadata": {**kept, **Values(self.rng).changed(marked, METADATA)}}
        content = self._content(obj)
        for _ in range(self.rng.choice((1, 1, 2))):
            found = self.values.changed(content, self.schema)
            content = found if isinstance(found, dict) else {}
        return {**{key: obj[key] for key in ("apiVersion", "kind", "metadata")}, **content}

    def _create(self) -> Ask:
        body = self.fresh()
        if self.chance(0.1):
            body["metadata"]["managedFields"] = self.entries.edited(self.entries.some())
        self.configs.clear()
        return self.ask("POST", body, self.updater())

    def _delete(self) -> Ask:
        return Ask("DELETE", self.path, subject=self.subject)

    # applies

    def config(self, manager: str) -> Object:
        """A configuration of an applier: another one, or its last one changed, or part of what is there."""
        last, draw = self.configs.get(manager), self.rng.random()
        if last is not None and draw < 0.55:
            config = {**last, **self.identity()}
            config = config if draw < 0.1 else self.changed(config)
        elif self.live is not None and draw < 0.75:
            meta = {key: each for key, each in self.live["metadata"].items() if key in METADATA["properties"]}
            found = self.values.part(self._content(self.live), self.schema)
            config = {**self.identity(), "metadata": {"name": self.name, **self.values.part(meta, {})}, **found}
            config = self.changed(config) if self.chance(0.3) else config
        elif draw < 0.82:
            config = {**self.identity(), "metadata": {"name": self.name}}
        else:
            config = self.fresh()
        return config

    def _apply(self) -> Ask:
        manager = self.rng.choice(APPLIERS)
        config = self.config(manager)
        self.configs[manager] = config
        return self._applied(config, manager, "")

    def _applied(self, config: Object, manager: str, under: str) -> Ask:
        if self.kind.custom and isinstance(config.get("metadata"), dict) and not self.chance(0.02):
            config = {**config, "metadata": {key: each for key, each in config["metadata"].items() if each}}
        if self.chance(0.04) and manager != "kubectl":  # whose annotation would show the version
            config = {**config, "metadata": {**(config.get("metadata") or {}), "resourceVersion": self._a_version()}}
        if self.odd and self.chance(0.15):
            config = self._spoilt(config, manager)
        query = {"force": self.rng.choice(("true", "true", "1", "false"))} if self.chance(0.45) else {}
        if self.odd and self.chance(0.06):
            manager = self.rng.choice((*ODD_NAMES, ""))
        return self.ask("PATCH", config, manager, content_type=APPLY, under=under, **query)

    def _a_version(self) -> Any:
        return self.rng.choice((VERSION_OF.format(self.subject), "1", "", "0", "abc", None))

    def _spoilt(self, config: Object, manager: str) -> Object:
        meta = config.get("metadata") or {}
        uids = ("u",) if manager == "kubectl" else (UID_OF.format(self.subject), "u")  # its annotation shows them
        wrong: tuple[Object, ...] = (
            {"kind": "Other"},
            {"kind": None},
            {"apiVersion": "v9"},
            {"apiVersion": self.kind.api_version("v7")},
            {"metadata": {**meta, "managedFields": self.rng.choice(([], [{}], self.entries.some()))}},
            {"metadata": {**meta, "name": "other"}},
            {"metadata": {**meta, "namespace": "other"}},
            {"metadata": {**meta, "uid": self.rng.choice(uids)}},
            {"metadata": {**meta, "generation": 7, "creationTimestamp": PAST[0]}},
            {"metadata": {**meta, "annotations": {"a": 1}}},
            {"metadata": {**meta, "odd": 1}},
            {"metadata": None},
            {"unknown": 1},
            {"spec": self.rng.choice(OTHERS)},
        )
        return {**config, **self.rng.choice(wrong)}

    def _status_apply(self) -> Ask:
        manager = self.rng.choice(APPLIERS)
        known = f"{manager}/status"
        config = self.config(known)
        self.configs[known] = config
        return self._applied(config, manager, "/status")

    # updates

    def _put(self) -> Ask:
        return self.ask("PUT", self._updated(self.current()), self.updater())

    def _updated(self, obj: Object) -> Object:
        draw = self.rng.random()
        if draw < 0.75:
            obj = self.changed(obj)
        elif draw < 0.85:
            obj = {**obj, **self._content(self.fresh())}
        meta = obj["metadata"]
        meta |= {"resourceVersion": VERSION_OF.format(self.subject), "uid": UID_OF.format(self.subject)}
        if self.chance(0.3):
            meta.pop("resourceVersion")
        draw = self.rng.random()
        if draw < 0.35:
            meta.pop("managedFields", None)
        elif draw < 0.45:
            meta["managedFields"] = self.rng.choice(([], [{}], None))
        elif draw < 0.65 and meta.get("managedFields"):
            meta["managedFields"] = self.entries.edited(meta["managedFields"])
        return obj

    def _aged(self) -> Ask:
        """The same object, its entries older: so later steps show who gets a new time."""
        obj = self.current()
        if not obj["metadata"].get("managedFields"):
            return self._merge_patch()
        for entry in obj["metadata"]["managedFields"]:
            if self.chance(0.8):
                entry["time"] = self.rng.choice(PAST)
        obj["metadata"] |= {"resourceVersion": VERSION_OF.format(self.subject), "uid": UID_OF.format(self.subject)}
        return self.ask("PUT", obj, self.updater())

    def _client_side(self) -> Ask:
        """What kubectl apply did before it did so on the server: a patch, and what it applied as an annotation."""
        config = self.fresh() if self.chance(0.4) else self.config("kubectl")
        config = {key: each for key, each in config.items() if each is not None}
        annotations = (config.get("metadata") or {}).get("annotations")
        annotations = annotations if isinstance(annotations, dict) else {}
        last = json.dumps(config) if self.chance(0.9) else self.rng.choice(("", "{}", "x", "[]", '{"apiVersion":"v1"}'))
        meta = {**(config.get("metadata") or {}), "annotations": {**annotations, LAST_APPLIED: last}}
        patch = {key: each for key, each in config.items() if key not in ("apiVersion", "kind")}
        self.configs["kubectl"] = config
        manager = "kubectl-client-side-apply" if self.chance(0.8) else self.updater()
        kind = MERGE if self.kind.custom or self.chance(0.5) else STRATEGIC
        return self.ask("PATCH", {**patch, "metadata": meta}, manager, content_type=kind)

    def _many(self) -> Ask:
        """Entries of many updaters, more than are kept."""
        obj = self.current()
        entry = self.entries.some()[1]
        count = self.rng.randint(9, 13)
        made = [{**entry, "manager": f"u{n}", "time": self.rng.choice(PAST)} for n in range(count)]
        obj["metadata"]["managedFields"] = [*(obj["metadata"].get("managedFields") or ()), *made]
        obj["metadata"] |= {"resourceVersion": VERSION_OF.format(self.subject), "uid": UID_OF.format(self.subject)}
        return self.ask("PUT", self.changed(obj), self.updater())

    def _merge_patch(self, under: str = "") -> Ask:
        patch = self._partly(self._content(self.current()), self.schema)
        patch = patch if isinstance(patch, dict) else {"spec": patch}
        if self.chance(0.2):
            patch["metadata"] = self._patched_metadata()
        return self.ask("PATCH", patch, self.updater(), content_type=MERGE, under=under)

    def _patched_metadata(self) -> Object:
        options: tuple[Object, ...] = (
            {"managedFields": self.rng.choice(([], [{}], None, self.entries.some()))},
            {"resourceVersion": self._a_version()},
            {"labels": self.rng.choice((None, {"a": None}, {"b": "y"}))},
            {"annotations": {LAST_APPLIED: self.rng.choice((None, "{}"))}},
            Values(self.rng).value(METADATA),
        )
        return self.rng.choice(options)

    def _partly(self, value: Any, schema: Schema) -> Any:
        """What of a value a merge patch names."""
        if isinstance(value, dict) and self.chance(0.9):
            known = [key for key in schema.get("properties") or () if key not in (schema.get("x-fixed") or ())]
            keys = sorted({*known, *value} - {"apiVersion", "kind", "metadata", *(schema.get("x-fixed") or ())}) or [
                "a"
            ]
            return {
                key: self._partly(value.get(key), below(schema, key))
                for key in self.rng.sample(keys, self.rng.randint(1, min(2, len(keys))))
            }
        draw = self.rng.random()
        return None if draw < 0.25 else value if draw < 0.35 else self.values.value(schema)

    def _strategic(self) -> Ask:
        draw, obj = self.rng.random(), self.changed(self.current())
        content = self.values.part(self._content(obj), {})
        if draw < 0.3:
            content = self._partly(self._content(self.current()), self.schema)
            content = content if isinstance(content, dict) else {}
        elif draw < 0.6:
            content = self._directed(content)
        patch = {**content, **({"metadata": self._patched_metadata()} if self.chance(0.15) else {})}
        return self.ask("PATCH", patch, self.updater(), content_type=STRATEGIC)

    def _directed(self, value: Any) -> Any:
        """The patch with a directive somewhere."""
        if isinstance(value, dict):
            if not value or self.chance(0.15):
                extra: tuple[Object, ...] = (
                    {"$patch": "replace"},
                    {"$patch": "delete"},
                    {"$patch": "merge"},
                    {"$retainKeys": sorted(value)},
                    {"$deleteFromPrimitiveList/finalizers": ["x.io/a"]},
                    {"$setElementOrder/ports": [{"port": 80}]},
                )
                return {**value, **self.rng.choice(extra)}
            key = self.rng.choice(sorted(value))
            return {**value, key: self._directed(value[key])}
        if isinstance(value, list) and value and isinstance(value[0], dict):
            if self.chance(0.4):
                return [{**value[0], "$patch": self.rng.choice(("delete", "delete", "replace", "merge"))}, *value[1:]]
            return [*value[1:], self._directed(value[0])]
        return value

    def _json_patch(self, under: str = "") -> Ask:
        operations = [self._operation() for _ in range(self.rng.choice((1, 1, 2)))]
        return self.ask("PATCH", operations, self.updater(), content_type=JSON, under=under)

    def _operation(self) -> Object:
        if self.chance(0.12):
            return self.entries.operation(len(self.current()["metadata"].get("managedFields") or ()))
        value: Any = self.current()
        schema, path = {**self.schema, "properties": {**self.schema["properties"], "metadata": METADATA}}, ""
        while isinstance(value, (dict, list)) and value and (not path or self.chance(0.7)):
            if isinstance(value, dict):
                options = [key for key in value if path or key in schema["properties"]]
                if not options:
                    break
                step: Any = self.rng.choice(sorted(options))
                schema = below(schema, step)
            else:
                step = self.rng.randrange(len(value))
                schema = schema.get("items") or {}
            path, value = f"{path}/{str(step).replace('~', '~0').replace('/', '~1')}", value[step]
        draw = self.rng.random()
        if draw < 0.45:
            return {"op": "replace", "path": path or "/spec", "value": self.values.value(schema)}
        if draw < 0.7:
            key = self.rng.choice(("a", "b", "0", "-"))
            return {
                "op": "add",
                "path": f"{path}/{key}",
                "value": self.values.value(schema.get("items") or below(schema, key)),
            }
        if draw < 0.9:
            return {"op": "remove", "path": path or "/data"}
        if path.count("/") < 3 and path.startswith("/metadata"):  # what is the servers' own has no place elsewhere
            path = "/spec"
        return {"op": self.rng.choice(("copy", "move")), "from": path, "path": f"{path.rpartition('/')[0]}/b"}

    # subresources

    def _status_write(self) -> Ask:
        draw = self.rng.random()
        if draw < 0.4:
            return self.ask("PUT", self._updated(self.current()), self.updater(), under="/status")
        return self._merge_patch("/status") if draw < 0.8 else self._json_patch("/status")

    def _scale(self) -> Object:
        meta = {"name": self.name, "namespace": "default"}
        return {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": meta,
            "spec": {"replicas": self.rng.randint(0, 3)},
        }

    def _scale_write(self) -> Ask:
        draw, replicas = self.rng.random(), self.rng.randint(0, 3)
        if draw < 0.4:
            return self.ask("PUT", self._scale(), self.updater(), under="/scale")
        if draw < 0.8:
            patch = self.rng.choice(
                (
                    {"spec": {"replicas": replicas}},
                    {"spec": {"replicas": None}},
                    {"metadata": {"labels": {"a": "b"}}},
                    {"spec": {"replicas": -1}},
                )
            )
            kind = MERGE if self.kind.custom or self.chance(0.5) else STRATEGIC
            return self.ask("PATCH", patch, self.updater(), content_type=kind, under="/scale")
        operation = {"op": "replace", "path": "/spec/replicas", "value": replicas}
        return self.ask("PATCH", [operation], self.updater(), content_type=JSON, under="/scale")

    def _scale_apply(self) -> Ask:
        manager = self.rng.choice(APPLIERS)
        scale = self._scale()
        if self.chance(0.1):
            scale["spec"] = self.rng.choice(({}, {"replicas": None}, {"replicas": "1"}, {"replicas": 1, "a": 2}))
        if self.chance(0.05):
            scale["apiVersion"] = "autoscaling/v2"
        return self._applied(scale, manager, "/scale")
