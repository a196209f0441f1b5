"""All that it takes to run an operator in a cluster, in the order in which it is to be applied."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from steersman.crdgen.definition import crds_of, models
from steersman.crdgen.modules import is_generated
from steersman.generate.deployment import Options, budget, deployment, labels, namespace, selector
from steersman.generate.kinds import Kinds
from steersman.generate.rbac import Identity, objects, permitted
from steersman.generate.webhooks import converted, has_webhooks, registrations, service, service_of
from steersman.runtime.manager import Manager

Object = dict[str, Any]


def own_definitions(module: ModuleType, manager: Manager, where: tuple[str, str] | None) -> list[Object]:
    """The CustomResourceDefinitions of the operator's own kinds.

    These are of the groups of what it reconciles or judges, and were not made from a definition of somebody else's.
    With the Service by which it is reached, they say whether objects are converted. Raises SchemaError.
    """
    worked_on = [controller.kind for controller in manager.controllers if controller.kind is not None]
    worked_on += [declared.kind for declared in manager.webhooks.declared]
    groups = {kind.api_kind().group for kind in worked_on}
    groups |= {name.partition(".")[2] for name in manager.webhooks.converted}
    found = crds_of(each for each in models(module) if each.api_kind().group in groups and not is_generated(each))
    return found if where is None else converted(found, manager.webhooks.converted, where)


def everything(module: ModuleType, manager: Manager, options: Options) -> tuple[list[Object], list[str]]:
    """The manifests, and notes about what could not be told from the code. Raises GenerateError, SchemaError."""
    kinds, common = Kinds(module), labels(options.name)
    identity = Identity(options.name, options.namespace)
    needs = permitted(manager, kinds, identity)
    asked = has_webhooks(manager)
    where = service_of(manager, options.name, options.namespace) if asked else None
    made = [namespace(options)]
    if options.crds:
        made += [_labelled(crd, common) for crd in own_definitions(module, manager, where)]
    made += objects(needs.grants, identity, common)
    if where is not None:
        made.append(service(where, common, selector(options.name)))
    made += [deployment(manager, options), budget(options)]
    if where is not None:
        # Last: once they are there, nothing of these kinds is written before the operator answers.
        made += [_labelled(obj, common) for obj in registrations(manager, kinds, where)]
    return made, [*needs.notes, *_notes(manager, asked)]


def _labelled(obj: Object, labels: Mapping[str, str]) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "labels": {**obj["metadata"].get("labels", {}), **labels}}}


def _notes(manager: Manager, asked: bool) -> list[str]:
    if asked and manager.webhooks.options.certificates is not None:
        return ["the webhooks' certificates come from elsewhere: mount them into the Pods"]
    return []
