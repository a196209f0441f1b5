"""The hooks themselves: from a review's bytes to the bytes that answer it.

Source: controller-runtime `pkg/webhook/admission/{validator_custom,defaulter_custom,webhook}.go`,
`pkg/webhook/conversion/conversion.go`.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import orjson

from steersman.apimachinery.errors import ApiError
from steersman.client.errors import DecodeError
from steersman.client.models import KubernetesObject
from steersman.client.options import wire
from steersman.client.resources import Kind, Object
from steersman.runtime.webhook.json_diff import json_diff
from steersman.runtime.webhook.reviews import (
    AdmissionRequest,
    Answer,
    Denied,
    read_admission,
    read_conversion,
    write_admission,
    write_conversion,
)

logger = logging.getLogger("steersman.runtime.webhook")

Judge = Callable[[Any, AdmissionRequest], Any]
"""`(obj, request) -> None`, async or plain; raises Denied, and may call `request.warn`."""

Mutate = Callable[[Any, AdmissionRequest], Any]
"""`(obj, request) -> obj | None`, async or plain; changes the object in place or gives the new one; raises Denied."""

Convert = Callable[[Object], Object]
"""`(obj) -> obj` from one version to another; apiVersion and metadata are seen to."""


class Hook(Protocol):
    """What stands at a path. Raises ReviewError for what is no review."""

    @property
    def name(self) -> str: ...

    async def answer(self, body: bytes) -> bytes: ...


class AdmissionHook:
    """Answers AdmissionReviews. A subclass says how."""

    def __init__(self, name: str, kind: Kind[Any]) -> None:
        self.name = name
        self._kind = kind

    async def answer(self, body: bytes) -> bytes:
        request = read_admission(body)
        try:
            answer = await self._judge(request)
        except Denied as denied:
            answer = Answer(False, denied.status())
        except ApiError as error:
            answer = Answer(False, error.to_status())
        except Exception as error:
            logger.exception("the webhook %s has failed", self.name)
            status = {"status": "Failure", "reason": "InternalError", "code": 500}
            answer = Answer(False, {**status, "message": f"{self.name}: {type(error).__name__}: {error}"})
        return write_admission(request, answer)

    async def _judge(self, request: AdmissionRequest) -> Answer:
        raise NotImplementedError

    def _typed(self, raw: Object) -> Any:
        try:
            return self._kind.from_wire(orjson.loads(orjson.dumps(raw)))
        except DecodeError as error:
            raise Denied(str(error), code=422, reason="Invalid") from None


class ValidatingHook(AdmissionHook):
    """Judges the new object; for DELETE the one that is to go."""

    def __init__(self, name: str, kind: Kind[Any], judge: Judge) -> None:
        super().__init__(name, kind)
        self._func = judge

    async def _judge(self, request: AdmissionRequest) -> Answer:
        raw = request.object if request.object is not None else request.old
        if raw is not None:
            verdict = await _called(self._func, self._typed(raw), request)
            if verdict is not None:  # not a False, which is easily meant to refuse
                raise TypeError(f"{_name(self._func)} gave {verdict!r:.80}: it is to raise Denied, or to give nothing")
        return Answer()


class MutatingHook(AdmissionHook):
    """Changes the new object: what the function has changed becomes a patch, and nothing else does."""

    def __init__(self, name: str, kind: Kind[Any], mutate: Mutate) -> None:
        super().__init__(name, kind)
        self._func = mutate

    async def _judge(self, request: AdmissionRequest) -> Answer:
        if request.object is None:
            return Answer()
        obj = self._typed(request.object)
        # Both as the model writes them: a field that it leaves out or writes in another way was not changed.
        before = orjson.loads(orjson.dumps(wire(obj)))
        changed = await _called(self._func, obj, request)
        if not _is_object(changed):
            raise TypeError(f"{_name(self._func)} gave {changed!r:.80}: it is to give the object, or nothing")
        after = wire(obj if changed is None else changed)
        return Answer(patch=list(json_diff(before, after)))


class ConversionHook:
    """Answers ConversionReviews: each object goes the shortest way through the conversions that there are.

    `conversions` are by (version, version), as in `{("v1", "v2"): up, ("v2", "v1"): down}`.
    """

    def __init__(self, name: str, conversions: Mapping[tuple[str, str], Convert]) -> None:
        self.name = name
        self._conversions = dict(conversions)

    async def answer(self, body: bytes) -> bytes:
        request = read_conversion(body)
        try:
            converted = [self._convert(obj, request.desired) for obj in request.objects]
        except Exception as error:
            logger.exception("the conversion webhook %s has failed", self.name)
            return write_conversion(request, None, f"{type(error).__name__}: {error}")
        return write_conversion(request, converted)

    def _convert(self, obj: Object, desired: str) -> Object:
        group, _, wanted = desired.rpartition("/")
        version = str(obj.get("apiVersion", "")).rpartition("/")[2]
        for source, target in self._way(version, wanted):
            metadata = obj.get("metadata") or {}
            func = self._conversions[source, target]
            obj = func(orjson.loads(orjson.dumps(obj)))
            if not isinstance(obj, dict):
                raise TypeError(f"{_name(func)}, from {source} to {target}, gave {obj!r:.80}: it is to give the object")
            # Of metadata, a conversion may change labels and annotations only.
            kept = {key: (obj.get("metadata") or {}).get(key) for key in ("labels", "annotations")}
            merged = {**metadata, **kept}
            obj = {**obj, "apiVersion": f"{group}/{target}" if group else target}
            obj["metadata"] = {key: value for key, value in merged.items() if value is not None}
        return obj

    def _way(self, version: str, wanted: str) -> Sequence[tuple[str, str]]:
        ways: list[list[tuple[str, str]]] = [[]]
        seen = {version}
        while ways:
            way = ways.pop(0)
            at = way[-1][1] if way else version
            if at == wanted:
                return way
            for source, target in self._conversions:
                if source == at and target not in seen:
                    seen.add(target)
                    ways.append([*way, (source, target)])
        raise LookupError(f"there is no conversion from {version} to {wanted}")


async def _called(func: Callable[..., Any], obj: Any, request: AdmissionRequest) -> Any:
    outcome = func(obj, request)
    return await outcome if inspect.isawaitable(outcome) else outcome


def _is_object(changed: Any) -> bool:
    """Whether a mutating function has given an object, or nothing for the one that it was given."""
    if changed is None or isinstance(changed, KubernetesObject):
        return True
    return isinstance(changed, Mapping) and "apiVersion" in changed


def _name(func: Callable[..., Any]) -> str:
    return getattr(func, "__qualname__", None) or type(func).__name__
