"""Which objects a list, watch or deletecollection wants: namespace, name, labels, fields."""

from __future__ import annotations

from steersman._util.dataclass import dataclass
from steersman.apimachinery import field_selectors, selectors
from steersman.apimachinery.errors import BadRequest
from steersman.apimachinery.field_selectors import FieldSelector
from steersman.apimachinery.options import ListOptions
from steersman.apimachinery.selectors import LabelSelector, SelectorError
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.watchcache import Entry


@dataclass(slots=True)
class Selection:
    """A predicate over cache entries. `everything` says that only the namespace narrows it."""

    namespace: str
    name: str
    labels: LabelSelector | None
    fields: FieldSelector | None
    scope: ResourceScope

    @property
    def everything(self) -> bool:
        return not self.name and self.labels is None and self.fields is None

    @property
    def looks_inside(self) -> bool:
        """Whether it depends on more than the name and namespace."""
        return self.labels is not None or self.fields is not None

    @property
    def place(self) -> str:
        """What all keys that it selects are, or start with: the one key, `NAMESPACE/`, or nothing."""
        if self.name and (self.namespace or not self.scope.namespaced):
            return f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.namespace}/" if self.namespace else ""

    @property
    def label(self) -> tuple[str, str] | None:
        """A label and the only value that it may have, if there is one that the stored objects have themselves."""
        if self.labels is None or self.labels.nothing or self.scope.view.remote:
            return None
        values = ((each.key, self.labels.exact(each.key)) for each in self.labels.requirements)
        return next(((key, value) for key, value in values if value is not None), None)

    def matches(self, entry: Entry) -> bool:
        key = entry.key
        if self.namespace and not key.startswith(self.namespace + "/"):
            return False
        if self.name and key.rpartition("/")[2] != self.name:
            return False
        if self.labels is not None and not self.labels.matches(self.scope.view.labels(entry)):
            return False
        return self.fields is None or self._fields_match(entry)

    def _fields_match(self, entry: Entry) -> bool:
        assert self.fields is not None
        namespace, _, name = entry.key.rpartition("/")
        values = {"metadata.name": name, "metadata.namespace": namespace}
        if all(term.field in values for term in self.fields.terms):
            return self.fields.matches(values.__getitem__)
        assert self.scope.fields_of is not None
        return self.fields.matches(self.scope.fields_of(self.scope.view.tree(entry)))


def select(scope: ResourceScope, namespace: str, options: ListOptions, name: str = "") -> Selection:
    """The selection that a request describes. Raises BadRequest for selectors that are malformed or not supported.

    `namespace` is the path's; that of a namespace itself is no part of its key.
    """
    try:
        labels = selectors.parse(options.label_selector)
        fields = field_selectors.parse(options.field_selector)
        if fields and scope.select_fields is not None:
            fields = scope.select_fields(fields)
    except SelectorError as error:
        raise BadRequest(str(error)) from None
    return Selection(namespace if scope.namespaced else "", name, labels or None, fields or None, scope)
