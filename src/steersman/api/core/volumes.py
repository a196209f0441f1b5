"""Volumes of pods: one source each, with what that source demands.

Source: kubernetes `pkg/apis/core/validation/validation.go` (ValidateVolumes, validateVolumeSource).
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from steersman._util.gotext import quote
from steersman.api import checks
from steersman.api.core.environment import VOLUME_FIELDS, field_ref_errors, resource_ref_errors
from steersman.api.core.paths import local_path, without_backsteps
from steersman.api.core.projections import bundle_errors, certificate_errors
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import names, quantity
from steersman.apimachinery.field_errors import FieldError

Object = dict[str, Any]
Rule = Callable[[Object, str], list[FieldError]]
_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
_HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_MAX_DRIVER = 63
_ONE = "may not specify more than 1 volume type"


def volumes_errors(
    volumes: Sequence[Object], place: str, pod_name: str, claim_template: Rule
) -> tuple[dict[str, Object], list[FieldError]]:
    """The sound volumes by name, and what is wrong with the others.

    `pod_name` is "" for templates; `claim_template` judges the claims that ephemeral volumes make.
    """
    errors: list[FieldError] = []
    found: dict[str, Object] = {}
    made = {f"{pod_name}-{volume.get('name')}" for volume in volumes if pod_name and volume.get("ephemeral")}
    for index, volume in enumerate(volumes):
        here, name = f"{place}[{index}]", volume.get("name") or ""
        wrong = _source_errors(volume, here, claim_template)
        if pod_name and name and volume.get("ephemeral") is not None:
            claimed = f"{pod_name}-{name}"
            texts = names.name_is_dns_subdomain(claimed, False)
            wrong += [fe.invalid(f"{here}.name", name, f"PVC name {quote(claimed)}: {text}") for text in texts]
        wrong += checks.dns_label(name, f"{here}.name") if name else [fe.required(f"{here}.name")]
        if name in found:
            wrong.append(fe.duplicate(f"{here}.name", name))
        if not wrong:
            found[name] = volume
        errors += wrong
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claim in made:
            text = "must not reference a PVC that gets created for an ephemeral volume"
            errors.append(fe.invalid(f"{here}.persistentVolumeClaim.claimName", claim, text))
    return found, errors


def _source_errors(volume: Object, place: str, claim_template: Rule) -> list[FieldError]:
    given = [key for key in _ORDER if volume.get(key) is not None]
    given += [key for key in volume if key not in ("name", *_ORDER) and volume[key] is not None]
    if not given:
        return [fe.required(place, "must specify a volume type")]
    errors: list[FieldError] = []
    first, *others = given
    source = volume[first]
    if first == "ephemeral":
        errors += _ephemeral(source, f"{place}.ephemeral", claim_template)
    elif first in _RULES:
        errors += _RULES[first](source, f"{place}.{first}")
    else:
        errors += [fe.required(f"{place}.{first}.{key}") for key in _REQUIRED.get(first, ()) if not source.get(key)]
    return errors + [fe.forbidden(f"{place}.{_PLACES.get(key, key)}", _ONE) for key in others]


def persistent_source_errors(spec: Object, keys: Sequence[str], place: str) -> list[FieldError]:
    """What a persistent volume is made of: one of `keys` of its spec."""
    given = [key for key in _PERSISTENT if key in keys and spec.get(key) is not None]
    given += [key for key in keys if key not in _PERSISTENT and spec.get(key) is not None]
    if not given:
        return [fe.required(place, "must specify a volume type")]
    first, *others = given
    source, field = spec[first], f"{place}.{first}"
    if first == "local":
        path = source.get("path") or ""
        errors = without_backsteps(path, f"{field}.path") if path else [fe.required(f"{field}.path")]
        if spec.get("nodeAffinity") is None:
            errors.append(fe.required(f"{place}.nodeAffinity", "Local volume requires node affinity"))
    elif first == "csi":
        errors = _csi(source, field)
    elif first in _RULES:
        errors = _RULES[first](source, field)
    else:
        errors = []
    errors += [fe.forbidden(f"{place}.{_PLACES.get(key, key)}", _ONE) for key in others]
    root = first == "hostPath" and posixpath.normpath(source.get("path") or "") == "/"
    if root and spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        text = "may not be 'recycle' for a hostPath mount of '/'"
        errors.append(fe.forbidden(f"{place}.persistentVolumeReclaimPolicy", text))
    return errors


def _csi(source: Object, place: str) -> list[FieldError]:
    driver = source.get("driver") or ""
    errors = [] if driver else [fe.required(f"{place}.driver")]
    if len(driver.encode()) > _MAX_DRIVER:
        errors.append(fe.too_long(f"{place}.driver", _MAX_DRIVER))
    if driver:
        texts = names.dns1123_subdomain(driver.lower())
        errors += [fe.invalid(f"{place}.driver", driver, text) for text in texts]
    errors += [] if source.get("volumeHandle") else [fe.required(f"{place}.volumeHandle")]
    for key in ("controllerPublish", "controllerExpand", "nodePublish", "nodeExpand"):
        if (reference := source.get(f"{key}SecretRef")) is not None:
            here = f"{place}.{key}SecretRef"
            name, namespace = reference.get("name") or "", reference.get("namespace") or ""
            errors += checks.dns_subdomain(name, f"{here}.name") if name else [fe.required(f"{here}.name")]
            field = f"{here}.namespace"
            errors += checks.dns_label(namespace, field) if namespace else [fe.required(field)]
    return errors


def _mode(source: Object, key: str, place: str) -> list[FieldError]:
    mode = source.get(key)
    return [fe.invalid(f"{place}.{key}", mode, _MODE)] if mode is not None and not 0 <= mode <= 0o777 else []


def _items(source: Object, place: str) -> list[FieldError]:
    errors = []
    for index, item in enumerate(source.get("items") or ()):
        here, path = f"{place}.items[{index}]", item.get("path") or ""
        errors += [fe.required(f"{here}.{key}") for key in ("key", "path") if not item.get(key)]
        errors += local_path(path, f"{here}.path")
        errors += _mode(item, "mode", here)
    return errors


def _empty_dir(source: Object, place: str) -> list[FieldError]:
    limit = source.get("sizeLimit")
    if limit is not None and quantity.parse(limit) < quantity.parse("0"):
        return [fe.forbidden(f"{place}.sizeLimit", "SizeLimit field must be a valid resource quantity")]
    return []


def _host_path(source: Object, place: str) -> list[FieldError]:
    path = source.get("path") or ""
    if not path:
        return [fe.required(f"{place}.path")]
    errors = []
    if ".." in path.split("/"):
        errors.append(fe.invalid(f"{place}.path", path, "must not contain '..'"))
    kind = source.get("type")
    if kind is not None and kind not in _HOST_PATH_TYPES:
        errors.append(fe.not_supported(f"{place}.type", kind, _HOST_PATH_TYPES))
    return errors


def _secret(source: Object, place: str) -> list[FieldError]:
    errors = [] if source.get("secretName") else [fe.required(f"{place}.secretName")]
    return errors + _mode(source, "defaultMode", place) + _items(source, place)


def _config_map(source: Object, place: str) -> list[FieldError]:
    errors = [] if source.get("name") else [fe.required(f"{place}.name")]
    return errors + _mode(source, "defaultMode", place) + _items(source, place)


def _downward_file(item: Object, place: str) -> list[FieldError]:
    path = item.get("path") or ""
    errors = [] if path else [fe.required(f"{place}.path")]
    errors += local_path(path, f"{place}.path")
    field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if field is not None:
        errors += field_ref_errors(field, f"{place}.fieldRef", VOLUME_FIELDS)
        if resource is not None:
            text = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.append(fe.invalid(place, "resource", text))
    elif resource is not None:
        errors += resource_ref_errors(resource, f"{place}.resourceFieldRef", volume=True)
    else:
        errors.append(fe.required(place, "one of fieldRef and resourceFieldRef is required"))
    return errors + _mode(item, "mode", place)


def _downward(source: Object, place: str) -> list[FieldError]:
    errors = _mode(source, "defaultMode", place)
    for item in source.get("items") or ():
        errors += _downward_file(item, place)
    return errors


def _projected(source: Object, place: str) -> list[FieldError]:
    errors = _mode(source, "defaultMode", place)
    seen: set[str] = set()
    for index, projection in enumerate(source.get("sources") or ()):
        here = f"{place}.sources[{index}]"
        given = [key for key in _PROJECTIONS if projection.get(key) is not None]
        for key in given:
            errors += _projection(key, projection[key], f"{here}.{key}", place, seen)
        if len(given) > 1:
            errors.append(fe.forbidden(here, f"{_ONE} per source"))
    return errors


def _projection(kind: str, source: Object, here: str, place: str, seen: set[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    paths = [item.get("path") or "" for item in source.get("items") or ()]
    if kind in ("secret", "configMap"):
        errors += [] if source.get("name") else [fe.required(f"{here}.name")]
        errors += _items(source, here)
    elif kind == "downwardAPI":
        for item in source.get("items") or ():
            errors += _downward_file(item, here)
    elif kind == "serviceAccountToken":
        return _token(source, here, place)
    elif kind == "clusterTrustBundle":
        errors += bundle_errors(source, here)
        paths = [source.get("path") or ""]
    else:
        errors += certificate_errors(source, here)
        paths = [source.get(key) or "" for key in ("credentialBundlePath", "keyPath", "certificateChainPath")]
    for path in paths if kind == "clusterTrustBundle" else filter(None, paths):
        if path in seen:
            name = source.get("name") if kind in ("secret", "configMap") else None
            errors.append(fe.invalid(place, name or path, "conflicting duplicate paths"))
        seen.add(path)
    return errors


def _token(source: Object, place: str, projected: str) -> list[FieldError]:
    seconds = source.get("expirationSeconds") or 0
    errors = []
    if seconds < 600:
        text = "may not specify a duration less than 10 minutes"
        errors.append(fe.invalid(f"{place}.expirationSeconds", seconds, text))
    elif seconds > 1 << 32:
        errors.append(
            fe.invalid(f"{place}.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")
        )
    path, field = source.get("path") or "", f"{projected}.path"  # as upstream has it
    return errors + (local_path(path, field) if path else [fe.required(field)])


def _ephemeral(source: Object, place: str, claim_template: Rule) -> list[FieldError]:
    template = source.get("volumeClaimTemplate")
    if template is None:
        return [fe.required(f"{place}.volumeClaimTemplate")]
    return claim_template(template, f"{place}.volumeClaimTemplate")


def _iscsi(source: Object, place: str) -> list[FieldError]:
    errors = [fe.required(f"{place}.{key}") for key in ("targetPortal", "iqn") if not source.get(key)]
    return errors + checks.in_range(source.get("lun") or 0, 0, 255, f"{place}.lun")


def _nfs(source: Object, place: str) -> list[FieldError]:
    errors = [fe.required(f"{place}.{key}") for key in ("server", "path") if not source.get(key)]
    path = source.get("path") or ""
    return errors if path.startswith("/") else [*errors, fe.invalid(f"{place}.path", path, "must be an absolute path")]


_PERSISTENT: tuple[str, ...] = ("hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs")
_PERSISTENT += ("rbd", "quobyte", "cephfs", "iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume")
_PERSISTENT += ("photonPersistentDisk", "portworxVolume", "azureDisk", "scaleIO", "local", "storageos", "csi")
_PROJECTIONS = ("secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate")
_ORDER: tuple[str, ...] = (
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
)
_ORDER += ("glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc")
_ORDER += ("flexVolume", "configMap", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume")
_ORDER += ("azureDisk", "storageos", "projected", "scaleIO", "csi", "ephemeral", "image")
_PLACES = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}  # as upstream spells it
_RULES: Mapping[str, Rule] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "secret": _secret,
    "configMap": _config_map,
    "downwardAPI": _downward,
    "projected": _projected,
    "iscsi": _iscsi,
    "nfs": _nfs,
}
_REQUIRED: Mapping[str, Sequence[str]] = {
    "awsElasticBlockStore": ("volumeID",),
    "azureDisk": ("diskName", "diskURI"),
    "azureFile": ("secretName", "shareName"),
    "cephfs": ("monitors",),
    "cinder": ("volumeID",),
    "csi": ("driver",),
    "flexVolume": ("driver",),
    "gcePersistentDisk": ("pdName",),
    "gitRepo": ("repository",),
    "glusterfs": ("endpoints", "path"),
    "image": ("reference",),
    "persistentVolumeClaim": ("claimName",),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "quobyte": ("registry", "volume"),
    "rbd": ("monitors", "image"),
    "scaleIO": ("gateway", "system", "volumeName"),
    "vsphereVolume": ("volumePath",),
}
