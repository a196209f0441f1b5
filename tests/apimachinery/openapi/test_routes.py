"""Operations of resources."""

from __future__ import annotations

import pytest

from steersman.apimachinery.gvk import GroupVersionKind
from steersman.apimachinery.openapi.names import identifier, operation_id, tag, with_article
from steersman.apimachinery.openapi.parameters import path_items
from steersman.apimachinery.openapi.resources import ResourceDescription, SubresourceDescription, model_name, reachable
from steersman.apimachinery.openapi.routes import Operation, operations

VERBS = frozenset({"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"})
ORDER = GroupVersionKind("shop.example.org", "v1", "Order")
SCALE = GroupVersionKind("autoscaling", "v1", "Scale")


def resource(
    *,
    group: str = "shop.example.org",
    namespaced: bool = True,
    custom: bool = True,
    verbs: frozenset[str] = VERBS,
    subresources: tuple[SubresourceDescription, ...] = (),
    returns_deleted: bool = False,
) -> ResourceDescription:
    gvk = GroupVersionKind(group, "v1", "Order")
    return ResourceDescription(
        gvk, "orders", namespaced, custom, verbs, "m.Order", "m.OrderList", subresources, returns_deleted
    )


def by_key(described: ResourceDescription) -> dict[tuple[str, str], Operation]:
    return {(found.method, found.path): found for found in operations(described)}


@pytest.mark.parametrize(
    ("group", "ids", "group_tag"),
    [
        ("", "listCoreV1NamespacedOrder", "core_v1"),
        ("apps", "listAppsV1NamespacedOrder", "apps_v1"),
        ("rbac.authorization.k8s.io", "listRbacAuthorizationV1NamespacedOrder", "rbacAuthorization_v1"),
        ("my-group.example.org", "listMyGroupExampleOrgV1NamespacedOrder", "myGroupExampleOrg_v1"),
    ],
)
def test_ids_and_tags(group: str, ids: str, group_tag: str) -> None:
    assert operation_id("list", group, "v1", "NamespacedOrder") == ids
    assert tag(group, "v1") == group_tag


@pytest.mark.parametrize(("text", "found"), [("a-b.c", "aBC"), ("1a", "A"), ("v1", "v1"), ("a_b", "a_b"), ("", "")])
def test_identifier(text: str, found: str) -> None:
    assert identifier(text, capitalize=False) == found


@pytest.mark.parametrize(
    ("kind", "text"),
    [("Order", "an Order"), ("Widget", "a Widget"), ("Endpoints", "Endpoints"), ("IngressClass", "an IngressClass")],
)
def test_articles(kind: str, text: str) -> None:
    assert with_article(kind) == text


def test_model_names_have_the_group_backwards() -> None:
    assert model_name("shop.example.org", "v1", "Order") == "org.example.shop.v1.Order"


def test_paths_of_a_namespaced_custom_resource() -> None:
    root = "/apis/shop.example.org/v1"
    inside = f"{root}/namespaces/{{namespace}}/orders"
    found = by_key(resource())
    assert set(found) == {
        ("get", f"{root}/orders"),
        *((method, inside) for method in ("get", "post", "delete")),
        *((method, f"{inside}/{{name}}") for method in ("get", "put", "patch", "delete")),
    }
    assert found["get", f"{root}/orders"].id == "listShopExampleOrgV1OrderForAllNamespaces"
    assert found["delete", inside].id == "deleteShopExampleOrgV1CollectionNamespacedOrder"
    assert found["delete", inside].action == "deletecollection"
    assert found["delete", inside].body == ""


def test_a_cluster_scoped_resource_has_one_collection() -> None:
    found = by_key(resource(namespaced=False))
    assert {path for _, path in found} == {
        "/apis/shop.example.org/v1/orders",
        "/apis/shop.example.org/v1/orders/{name}",
    }
    assert found["post", "/apis/shop.example.org/v1/orders"].id == "createShopExampleOrgV1Order"


def test_built_in_kinds_also_have_the_old_watch_paths() -> None:
    found = by_key(resource(group="", custom=False))
    watches = {path: operation for (_, path), operation in found.items() if "/watch/" in path}
    assert set(watches) == {
        "/api/v1/watch/orders",
        "/api/v1/watch/namespaces/{namespace}/orders",
        "/api/v1/watch/namespaces/{namespace}/orders/{name}",
    }
    assert watches["/api/v1/watch/orders"].id == "watchCoreV1OrderListForAllNamespaces"
    assert watches["/api/v1/watch/orders"].action == "watchlist"
    assert watches["/api/v1/watch/namespaces/{namespace}/orders/{name}"].action == "watch"


def test_only_served_verbs_have_operations() -> None:
    assert list(by_key(resource(custom=False, verbs=frozenset({"create"})))) == [
        ("post", "/apis/shop.example.org/v1/namespaces/{namespace}/orders")
    ]
    without_watch = by_key(resource(custom=False, verbs=frozenset({"get", "list"})))
    assert not any("/watch/" in path for _, path in without_watch)


def test_strategic_merge_patch_is_for_built_in_kinds() -> None:
    path = "/apis/shop.example.org/v1/orders/{name}"
    strategic = "application/strategic-merge-patch+json"
    assert strategic not in by_key(resource(namespaced=False))["patch", path].consumes
    assert strategic in by_key(resource(namespaced=False, custom=False))["patch", path].consumes


@pytest.mark.parametrize(
    ("returns_deleted", "model"), [(True, "m.Order"), (False, "io.k8s.apimachinery.pkg.apis.meta.v1.Status")]
)
def test_what_a_delete_answers(returns_deleted: bool, model: str) -> None:
    found = by_key(resource(namespaced=False, returns_deleted=returns_deleted))
    assert found["delete", "/apis/shop.example.org/v1/orders/{name}"].responses == ((200, model), (202, model))


def test_subresources() -> None:
    subresources = (
        SubresourceDescription("status", ORDER, "m.Order", ("get", "patch", "update")),
        SubresourceDescription("scale", SCALE, "m.Scale", ("get", "patch", "update")),
        SubresourceDescription("refund", GroupVersionKind("pay", "v1", "Refund"), "m.Refund", ("create",)),
    )
    root = "/apis/shop.example.org/v1/namespaces/{namespace}/orders/{name}"
    found = by_key(resource(subresources=subresources, custom=False))
    assert {method for method, path in found if path == f"{root}/status"} == {"get", "put", "patch"}
    assert found["get", f"{root}/scale"].description == "read scale of the specified Order"
    assert found["get", f"{root}/scale"].gvk == SCALE
    assert found["put", f"{root}/scale"].body == "m.Scale"
    assert found["post", f"{root}/refund"].description == "create refund of an Order"
    assert found["post", f"{root}/refund"].id == "createShopExampleOrgV1NamespacedOrderRefund"
    custom = by_key(resource(subresources=subresources))
    assert custom["get", f"{root}/scale"].gvk == ORDER


def test_every_id_is_used_once() -> None:
    status = SubresourceDescription("status", SCALE, "m.Order", ("get", "patch", "update"))
    for custom in (True, False):
        ids = [found.id for found in operations(resource(custom=custom, subresources=(status,)))]
        assert len(ids) == len(set(ids))


def test_what_all_operations_of_a_path_have_is_said_once() -> None:
    items = {item.path: item for item in path_items(operations(resource()))}
    whole = items["/apis/shop.example.org/v1/orders"]
    assert "watch" in [parameter.name for parameter in whole.shared]
    assert whole.own(whole.operations[0]) == []
    one = items["/apis/shop.example.org/v1/namespaces/{namespace}/orders/{name}"]
    assert [parameter.name for parameter in one.shared] == ["name", "namespace", "pretty"]
    own = {operation.method: [parameter.name for parameter in one.own(operation)] for operation in one.operations}
    assert own["get"] == ["resourceVersion"]
    assert own["patch"] == ["dryRun", "fieldManager", "fieldValidation", "force"]


def test_reachable_follows_references_and_ends() -> None:
    schemas: dict[str, dict[str, object]] = {
        "a": {"properties": {"b": {"allOf": [{"$ref": "#/x/b"}]}}},
        "b": {"items": {"$ref": "#/x/a"}, "additionalProperties": {"$ref": "#/x/gone"}},
        "c": {"type": "object"},
        "d": {"properties": {"$ref": {"type": "string"}}},
    }
    assert reachable(["a"], schemas, "#/x/") == {"a", "b"}
    assert reachable(["d", "gone"], schemas, "#/x/") == {"d"}
