"""Which objects a list, watch or deletecollection wants: namespace, name, labels, fields."""

from __future__ import annotations

from dataclasses import dataclass

from steersman.apimachinery import field_selectors, selectors
from steersman.apimachinery.errors import BadRequest
from steersman.apimachinery.field_selectors import FieldSelector
from steersman.apimachinery.options import ListOptions
from steersman.apimachinery.selectors import LabelSelector, SelectorError
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.watchcache import Entry

_ALWAYS = ("metadata.name", "metadata.namespace")


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

    def matches(self, entry: Entry) -> bool:
        key = entry.key
        if self.namespace and not key.startswith(self.namespace + "/"):
            return False
        if self.name and key.rpartition("/")[2] != self.name:
            return False
        if self.labels is not None and not self.labels.matches(entry.labels):
            return False
        return self.fields is None or self._fields_match(entry)

    def _fields_match(self, entry: Entry) -> bool:
        assert self.fields is not None
        namespace, _, name = entry.key.rpartition("/")
        values = {"metadata.name": name, "metadata.namespace": namespace}
        wanted = [term.field for term in self.fields.terms if term.field not in values]
        if wanted:
            obj = self.scope.view.tree(entry)
            values.update((field, self.scope.selectable[field](obj)) for field in wanted)
        return self.fields.matches(values.__getitem__)


def select(scope: ResourceScope, namespace: str, options: ListOptions, name: str = "") -> Selection:
    """The selection that a request describes. Raises BadRequest for selectors that are malformed or not supported."""
    labels = fields = None
    try:
        if options.label_selector:
            labels = selectors.parse(options.label_selector)
        if options.field_selector:
            fields = field_selectors.parse(options.field_selector)
    except SelectorError as error:
        raise BadRequest(str(error)) from None
    if fields is not None:
        for term in fields.terms:
            if term.field not in _ALWAYS and term.field not in scope.selectable:
                raise BadRequest(f"field label not supported: {term.field}")
    return Selection(
        namespace,
        name,
        labels or None,
        fields or None,
        scope,
    )
