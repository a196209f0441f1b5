"""An operator that judges, defaults and converts its kind, in two versions; all that the API server is told of that."""

from __future__ import annotations

import steersman as st

GROUP = "hooked.example.com"


class Old(st.Model):
    size: int = 1


class New(st.Model):
    count: int = 1
    env: str = "dev"


@st.custom_resource(f"{GROUP}/v1", kind="Shop")
class ShopV1(st.CustomResource[Old, None]): ...


@st.custom_resource(f"{GROUP}/v2", storage=True)
class Shop(st.CustomResource[New, None]): ...


def up(obj: st.Object) -> st.Object:
    return {**obj, "spec": {"count": obj["spec"].get("size", 1)}}


def down(obj: st.Object) -> st.Object:
    return {**obj, "spec": {"size": obj["spec"].get("count", 1)}}


def validate(shop: Shop, request: st.AdmissionRequest) -> None:
    if shop.spec.count > 9:
        raise st.Denied("too many", field="spec.count")


def default(shop: Shop, request: st.AdmissionRequest) -> None:
    shop.spec.env = shop.spec.env or "dev"


async def reconcile(ctx: st.Context, shop: Shop) -> None: ...


manager = st.Manager(name="shops", webhooks=st.Webhooks("127.0.0.1:0"))
manager.controller(Shop, reconcile)
manager.webhook(Shop, validate=validate, default=default, operations=("CREATE", "UPDATE", "DELETE"))
manager.conversion(f"shops.{GROUP}", {("v1", "v2"): up, ("v2", "v1"): down})
