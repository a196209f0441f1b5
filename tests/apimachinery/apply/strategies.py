"""Hypothesis strategies for paths and field sets."""

from __future__ import annotations

from hypothesis import strategies as st

from steersman.apimachinery.apply import path as paths
from steersman.apimachinery.apply.fieldset import from_paths

scalars = st.one_of(
    st.sampled_from(["", "a", "é", "<b>", 'q"u', "back\\slash"]), st.integers(-9, 11), st.booleans(), st.just(1.5)
)
elements = st.one_of(
    st.sampled_from(["a", "b", "spec", "app.kubernetes.io/name"]).map(paths.field),
    st.dictionaries(st.sampled_from(["name", "port"]), scalars, min_size=1).map(
        lambda fields: paths.key(fields.items())
    ),
    scalars.map(paths.value),
    st.integers(0, 12).map(paths.index),
)
path_lists = st.lists(st.lists(elements, min_size=1, max_size=4).map(tuple), max_size=12)
field_sets = path_lists.map(from_paths)
