"""A MutatingAdmissionPolicy at work: what its mutations make of an object.

Source: apiserver `pkg/admission/plugin/policy/mutating/compilation.go`,
`pkg/admission/plugin/policy/mutating/patch/{json_patch,smd}.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from steersman.api.admissionregistration.expressions import (
    BUDGET,
    Activation,
    AdmissionVariables,
    Compiled,
    Composition,
    Names,
    OutOfBudget,
    compile_admission,
)
from steersman.api.admissionregistration.matching import Conditions, compile_conditions
from steersman.api.admissionregistration.patches import (
    APPLY_CONFIGURATION,
    JSON_PATCHES,
    PatchError,
    apply_configuration,
    json_patch,
)
from steersman.api.strategy import Object
from steersman.apimachinery.apply import path as paths
from steersman.apimachinery.apply.merge import merge
from steersman.apimachinery.apply.typed import Atom, TypeView
from steersman.apimachinery.apply.validate import validate
from steersman.apimachinery.errors import ApiError
from steersman.apimachinery.gvk import split_api_version
from steersman.apimachinery.patch import json_patch as patching


class MutationError(Exception):
    """A mutation cannot be made: the policy's failure policy decides. The message is upstream's."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """One of a policy's mutations. `merges`: it is an apply configuration, else a JSON patch."""

    expression: Compiled
    merges: bool
    composition: Composition

    def made(self, variables: AdmissionVariables, view: TypeView | None) -> Object:
        """What becomes of the object; it may share structure with it. Raises MutationError.

        `view` is how objects of the kind merge, None if that is not known.
        """
        obj: Object = variables.object
        built = self._evaluate(variables)
        try:
            if self.merges:
                return _merged(obj, apply_configuration(built), view)
            return _patched(obj, json_patch(built))
        except PatchError as error:
            raise MutationError(str(error)) from None

    def _evaluate(self, variables: AdmissionVariables) -> Any:
        if self.expression.error:
            raise MutationError(self.expression.error)
        try:
            evaluation = Activation(variables, BUDGET, self.composition).evaluate(self.expression)
        except OutOfBudget as error:
            raise MutationError(str(error)) from None
        if evaluation.error:
            raise MutationError(evaluation.error)
        return evaluation.value


@dataclass(frozen=True, slots=True)
class Mutator:
    """A compiled policy: when it counts, and what it does. `again`: it wants to see what others changed after it."""

    conditions: Conditions
    mutations: tuple[Mutation, ...]
    again: bool


def compile_mutator(spec: Mapping[str, Any]) -> Mutator:
    """Compile a policy. Never raises: what does not compile is an error whenever it is to be evaluated."""
    names, composition = Names(params=spec.get("paramKind") is not None), Composition()
    for variable in spec.get("variables") or ():
        composition.add(variable.get("name") or "", variable.get("expression") or "", names)
    conditions = compile_conditions(spec.get("matchConditions") or (), params=names.params, composition=composition)
    mutations = []
    for each in spec.get("mutations") or ():
        merges = each.get("patchType") == "ApplyConfiguration"
        source = (each.get("applyConfiguration" if merges else "jsonPatch") or {}).get("expression") or ""
        wanted = APPLY_CONFIGURATION if merges else JSON_PATCHES
        compiled = compile_admission(source, (wanted,), names, composition, patches=True)
        mutations.append(Mutation(compiled, merges, composition))
    return Mutator(conditions, tuple(mutations), spec.get("reinvocationPolicy") == "IfNeeded")


def _patched(obj: Object, operations: list[dict[str, Any]]) -> Object:
    """The object after a JSON patch; the same when one of its conditions does not hold."""
    try:
        patched = patching.apply(obj, operations, most=None)
    except ApiError as error:
        if isinstance(error.__cause__, patching.ConditionFailed):
            return obj
        raise MutationError(f"JSON Patch: {error.__cause__ or error.message}") from None
    return patched if isinstance(patched, dict) else {}


def _merged(obj: Object, configuration: Object, view: TypeView | None) -> Object:
    """The object with all that an apply configuration sets."""
    patch = {**configuration, "apiVersion": obj.get("apiVersion"), "kind": obj.get("kind")}
    failed = "error applying patch: "
    if view is None:
        group, version = split_api_version(obj["apiVersion"])
        why = f"no corresponding type for {group}/{version}, Kind={obj['kind']}"
        raise MutationError(f"{failed}failed to convert patch object to typed object: {why}")
    if wrong := validate(view, patch):
        raise MutationError(f"{failed}failed to convert patch object to typed object: {wrong}")
    if atomics := _atomics(view.root, patch, []):
        words = "may not mutate atomic arrays, maps or structs"
        raise MutationError(f"{failed}invalid ApplyConfiguration: {words}: {', '.join(atomics)}")
    metadata = obj.get("metadata") or {}
    managed = metadata.get("managedFields")
    live = {**obj, "metadata": {key: value for key, value in metadata.items() if key != "managedFields"}}
    if wrong := validate(view, live, allow_duplicates=True):
        raise MutationError(f"{failed}failed to convert original object to typed object: {wrong}")
    merged = merge(view, live, patch)
    if managed is None:
        return merged
    return {**merged, "metadata": {**(merged.get("metadata") or {}), "managedFields": managed}}


def _atomics(atom: Atom, value: Any, path: list[str]) -> list[str]:
    """The places of a value that can only be replaced whole, which a mutation could do without meaning to."""
    found: list[str] = []
    if isinstance(value, dict) and atom.map is not None:
        if atom.map.atomic:
            found.append("".join(path))
        for key, item in value.items():
            child = atom.map.fields.get(key)
            if child is not None:
                found += _atomics(child, item, [*path, paths.describe([paths.field(key)])])
    elif isinstance(value, list) and atom.list is not None:
        if atom.list.atomic:
            found.append("".join(path))
        for index, item in enumerate(value):
            found += _atomics(atom.list.items, item, [*path, f"[{index}]"])
    return found
