"""Kinds that between them say everything that a model can say; each becomes a CustomResourceDefinition."""

from __future__ import annotations

import enum
import uuid
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from ipaddress import IPv4Address, IPv4Network, IPv6Address
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import (
    AnyUrl,
    Base64Bytes,
    BaseModel,
    ConfigDict,
    Field,
    HttpUrl,
    IPvAnyAddress,
    JsonValue,
    NonNegativeInt,
    PositiveFloat,
    RootModel,
    SecretStr,
    StringConstraints,
)

import steersman as st

GROUP = "kinds.example.com"


class Empty(st.Model):
    pass


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class ScalarsSpec(st.Model):
    text: str
    whole: int
    real: float
    yes: bool
    note: str = ""
    replicas: int = 1
    ratio: float = 0.5
    on: bool = False
    small: st.Int32 = 3
    big: Annotated[int, st.int64] = 4


@st.custom_resource(f"{GROUP}/v1")
class Scalars(st.CustomResource[ScalarsSpec, None]):
    """All plain types.

    With a second paragraph: of "quoted" words.
    """


class OptionalsSpec(st.Model):
    text: str | None = None
    whole: int | None = Field(None, ge=1, le=9)
    nulls: Annotated[str | None, st.nullable] = None
    items: list[int | None] = Field(default_factory=list)
    values: dict[str, str | None] = Field(default_factory=dict)


@st.custom_resource(f"{GROUP}/v1")
class Optionals(st.CustomResource[OptionalsSpec, None]): ...


class NumbersSpec(st.Model):
    low: int = Field(ge=0)
    high: int = Field(le=100)
    above: int = Field(gt=0)
    below: float = Field(lt=1.5)
    even: int = Field(multiple_of=2)
    any_natural: NonNegativeInt = 0
    positive: PositiveFloat | None = None


@st.custom_resource(f"{GROUP}/v1")
class Numbers(st.CustomResource[NumbersSpec, None]): ...


class TextsSpec(st.Model):
    name: str = Field(min_length=2, max_length=5)
    code: str = Field(pattern="^[a-z]+$")
    constrained: Annotated[str, StringConstraints(min_length=1, pattern=r"^\d")]
    marked: Annotated[str, st.pattern("^x")] = "xy"
    host: Annotated[str, st.text_format("hostname")] | None = None


@st.custom_resource(f"{GROUP}/v1")
class Texts(st.CustomResource[TextsSpec, None]): ...


class FormatsSpec(st.Model):
    at: datetime
    day: date
    id: uuid.UUID
    v4: IPv4Address
    v6: IPv6Address
    net: IPv4Network
    address: IPvAnyAddress
    link: AnyUrl
    page: HttpUrl
    data: Base64Bytes
    password: SecretStr
    wait: st.Duration
    span: Annotated[str, st.duration] = "5m"


@st.custom_resource(f"{GROUP}/v1", plural="formatted")
class Formats(st.CustomResource[FormatsSpec, None]): ...


class EnumsSpec(st.Model):
    mode: Literal["fast", "slow"] = "slow"
    count: Literal[1, 2, 3]
    colour: Colour = Colour.RED
    level: Level
    either: Literal["a"] | Literal["b"]
    flag: Literal[True] = True
    maybe: Literal["x", None] = None


@st.custom_resource(f"{GROUP}/v1")
class Enums(st.CustomResource[EnumsSpec, None]): ...


class Port(st.Model):
    """Where something listens."""

    name: str
    number: int = Field(ge=1, le=65535)
    protocol: Literal["TCP", "UDP"] = "TCP"


class ListsSpec(st.Model):
    names: list[str] = Field(default_factory=list, max_length=3)
    matrix: list[list[int]] = Field(default_factory=list)
    ports: Annotated[list[Port], st.list_map("name", "protocol")] = Field(default_factory=list)
    tags: set[str] = Field(default_factory=set)
    zones: Annotated[list[str], st.list_set] = Field(default_factory=list)
    order: Annotated[list[str], st.atomic] = Field(default_factory=list)
    pair: tuple[int, int]
    many: tuple[str, ...] = ()
    some: Sequence[str] = ("a", "b")
    short: list[Annotated[str, Field(max_length=4)]] = Field(default_factory=list)


@st.custom_resource(f"{GROUP}/v1")
class Lists(st.CustomResource[ListsSpec, None]): ...


class MapsSpec(st.Model):
    labels: dict[str, str] = Field(default_factory=dict, max_length=2)
    limits: Mapping[str, int] = Field(default_factory=dict)
    ports: dict[str, Port] = Field(default_factory=dict)
    deep: dict[str, dict[str, list[int]]] = Field(default_factory=dict)
    whole: Annotated[dict[str, str], st.atomic] = Field(default_factory=dict)
    known: dict[str, str] = Field(default_factory=lambda: {"a": "b"})


@st.custom_resource(f"{GROUP}/v1")
class Maps(st.CustomResource[MapsSpec, None]): ...


class Inner(st.Model):
    size: int = 3
    mode: str | None = None


class Middle(st.Model):
    inner: Inner = Field(default_factory=Inner)
    inner_with: Inner = Field(default_factory=lambda: Inner(mode="m"))


class NestedSpec(st.Model):
    middle: Middle = Field(default_factory=Middle)
    required: Inner
    plain_model: Empty = Field(default_factory=Empty)


@st.custom_resource(f"{GROUP}/v1")
class Nested(st.CustomResource[NestedSpec, None]): ...


class FreeSpec(st.Model):
    anything: Any = None
    json_value: JsonValue = None
    settings: dict[str, Any] = Field(default_factory=dict)
    bare: dict = Field(default_factory=dict)  # type: ignore[type-arg]
    bare_list: list = Field(default_factory=list)  # type: ignore[type-arg]
    open: Annotated[Inner, st.preserve_unknown] | None = None
    template: Annotated[dict[str, Any], st.embedded] | None = None
    raw: Annotated[object, st.raw_schema({"type": "string", "maxLength": 7})] = ""


@st.custom_resource(f"{GROUP}/v1")
class Free(st.CustomResource[FreeSpec, None]): ...


class MixedSpec(st.Model):
    port: st.IntOrString
    other: int | str = 80
    marked: Annotated[int | str, st.int_or_string] = "25%"
    memory: st.Quantity = "1Gi"
    number: int | float = 1
    range: Annotated[int, Field(ge=10)] | Annotated[int, Field(le=3)] = 1
    address: IPv4Address | IPv6Address | None = None


@st.custom_resource(f"{GROUP}/v1")
class Mixed(st.CustomResource[MixedSpec, None]): ...


class FileSource(st.Model):
    type: Literal["file"]
    path: str


class UrlSource(st.Model):
    type: Literal["url"]
    url: str
    retries: int | None = None


class UnionsSpec(st.Model):
    source: FileSource | UrlSource
    tagged: Annotated[FileSource | UrlSource, Field(discriminator="type")] | None = None
    many: list[FileSource | UrlSource] = Field(default_factory=list)


@st.custom_resource(f"{GROUP}/v1")
class Unions(st.CustomResource[UnionsSpec, None]): ...


class TreeNode(st.Model):
    name: str
    child: Annotated[TreeNode | None, st.preserve_unknown] = None


class TreesSpec(st.Model):
    root: TreeNode


@st.custom_resource(f"{GROUP}/v1")
class Trees(st.CustomResource[TreesSpec, None]): ...


@st.schema(st.rule("self.low <= self.high", "low is above high"))
class Range(st.Model):
    low: int
    high: int


class RuledSpec(st.Model):
    env: Literal["dev", "prod"] = "dev"
    logging: str | None = Field(None, max_length=64)
    fixed: Annotated[str, st.rule("self == oldSelf", "it cannot change")] = Field("a", max_length=64)
    range: Range | None = None
    ranges: list[Range] = Field(default_factory=list, max_length=10)


@st.custom_resource(
    f"{GROUP}/v1",
    rules=[
        st.rule("self.env != 'prod' || has(self.logging)", "prod needs logging", at="spec"),
        st.rule("self.metadata.name.size() < 30", reason="FieldValueForbidden", field_path=".spec.env"),
    ],
)
class Ruled(st.CustomResource[RuledSpec, None]): ...


class ScaledSpec(st.Model):
    replicas: st.Int32 = Field(1, ge=0)
    region: str = "eu"


class ScaledStatus(st.Model):
    replicas: st.Int32 = 0
    selector: str = ""
    observed_generation: int = 0
    conditions: list[st.Condition] = Field(default_factory=list)


@st.custom_resource(
    f"{GROUP}/v1",
    plural="scaled",
    singular="scale-one",
    list_kind="ScaledList",
    short_names=["sc", "scs"],
    categories=["all", "kinds"],
    columns=[
        st.column("Replicas", ".spec.replicas", type="integer", description="How many are wanted."),
        st.column("Age", ".metadata.creationTimestamp", type="date"),
        st.column("Region", ".spec.region", priority=1),
    ],
    scale=st.scale(".spec.replicas", ".status.replicas", selector=".status.selector"),
    selectable_fields=[".spec.region"],
)
class Scaled(st.CustomResource[ScaledSpec, ScaledStatus]): ...


@st.custom_resource(f"{GROUP}/v1", namespaced=False, status=False)
class ClusterWide(st.CustomResource[ScaledSpec, ScaledStatus]): ...


class DescribedSpec(st.Model):
    """What is wanted."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    size: int = Field(1, description="How large.", title="Size", examples=[5])
    old: str | None = Field(None, deprecated="use size")
    documented: str = "x"
    """Said below the field."""


@st.custom_resource(f"{GROUP}/v1")
class Described(st.CustomResource[DescribedSpec, None]): ...


class AliasesSpec(st.Model):
    ref: str = Field(alias="$ref")
    from_: str | None = Field(None, alias="from")
    API_key: str = Field("k", serialization_alias="APIKey", validation_alias="APIKey")
    ignored: int = Field(0, exclude=True)


@st.custom_resource(f"{GROUP}/v1", plural="aliased")
class Aliases(st.CustomResource[AliasesSpec, None]): ...


class Names(RootModel[list[str]]):
    """Some names."""


class PlainBase(BaseModel):
    snake_case: int = 1


class RootsSpec(st.Model):
    names: Names | None = None
    other: PlainBase = Field(default_factory=PlainBase)


@st.custom_resource(f"{GROUP}/v1")
class Roots(st.CustomResource[RootsSpec, None]): ...


T = TypeVar("T")


class Box(st.Model, Generic[T]):
    content: T


class GenericsSpec(st.Model):
    number: Box[int]
    text: Box[str]
    nested: Box[Box[bool]] | None = None


@st.custom_resource(f"{GROUP}/v1")
class Generics(st.CustomResource[GenericsSpec, None]): ...


class Base(st.Model):
    shared: str = "s"


class Derived(Base):
    own: int = 2


class InheritedSpec(st.Model):
    derived: Derived = Field(default_factory=Derived)


@st.custom_resource(f"{GROUP}/v1")
class Inherited(st.CustomResource[InheritedSpec, None]): ...


@st.custom_resource(f"{GROUP}/v1")
class Topless(st.KubernetesObject):
    """An object with fields of its own at the top."""

    data: dict[str, str] = Field(default_factory=dict)
    immutable: bool | None = None


class OldSpec(st.Model):
    size: str


class NewSpec(st.Model):
    size: int
    unit: Literal["m", "cm"] = "m"


@st.custom_resource(f"{GROUP}/v1alpha1", kind="Versioned", deprecated="v1alpha1 goes away")
class VersionedOld(st.CustomResource[OldSpec, None]): ...


@st.custom_resource(f"{GROUP}/v1beta1", kind="Versioned", served=False, deprecated=True)
class VersionedUnserved(st.CustomResource[OldSpec, None]): ...


@st.custom_resource(f"{GROUP}/v1", kind="Versioned", storage=True)
class Versioned(st.CustomResource[NewSpec, None]): ...


class Policy(st.Model):
    max: st.IntOrString = "25%"
    steps: Annotated[list[Inner], st.atomic] = Field(default_factory=lambda: [Inner(size=9)])


class DefaultsSpec(st.Model):
    policy: Policy = Field(default_factory=Policy)
    colours: list[Colour] = Field(default_factory=lambda: [Colour.BLUE])
    wait: st.Duration = Field(default_factory=lambda: __import__("datetime").timedelta(minutes=90))
    fresh: uuid.UUID = Field(default_factory=uuid.uuid4)
    home: IPv4Address = IPv4Address("127.0.0.1")
    zero: int = 0


@st.custom_resource(f"{GROUP}/v1")
class Defaulted(st.CustomResource[DefaultsSpec, None]): ...


class WorkloadSpec(st.Model):
    object_ref: Annotated[Port, st.atomic] | None = None
    template: Annotated[dict[str, Any], st.embedded]


@st.custom_resource(f"{GROUP}/v1")
class Workload(st.CustomResource[WorkloadSpec, ScaledStatus]): ...


@st.custom_resource(f"{GROUP}/v1", kind="Policy")
class PolicyKind(st.CustomResource[Policy, ScaledStatus]): ...


@st.custom_resource(f"{GROUP}/v1", kind="Switch")
class SwitchKind(st.CustomResource[Empty, Empty]): ...


@st.custom_resource(f"{GROUP}/v1", kind="Anything")
class AnythingKind(st.KubernetesObject):
    spec: Any = None


@st.custom_resource(f"{GROUP}/v1", kind="Toggle", scale=st.scale(".spec.replicas", ".status.replicas"))
class ToggleKind(st.CustomResource[ScaledSpec, ScaledStatus]): ...


@st.custom_resource(f"{GROUP}/v1", kind="Window")
class WindowKind(st.KubernetesObject):
    spec: Annotated[Range, st.rule("self.high - self.low <= 100", "too wide")]
    status: Annotated[dict[str, int], st.atomic] | None = None


@st.custom_resource(f"{GROUP}/v1", kind="Route", columns=[st.column("Hosts", ".spec.hosts", type="string")])
class RouteKind(st.KubernetesObject):
    class RouteSpec(st.Model):
        hosts: Annotated[
            list[Annotated[str, st.text_format("hostname"), Field(max_length=253)]],
            st.list_set,
            Field(min_length=1, max_length=16),
            st.rule("self.all(h, h.contains('.'))", "hosts have a domain"),
        ]
        weight: Annotated[int, st.int32, Field(ge=0, le=100)] = 100

    spec: RouteSpec
