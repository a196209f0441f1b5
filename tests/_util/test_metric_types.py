import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from steersman._util.metric_types import Counter, Gauge, Histogram, expose, format_number

BOUNDS = (0.5, 1.0, 1e6)
label_values = st.text(st.characters(blacklist_categories=("Cs", "Cc"), whitelist_characters="\n"), max_size=8)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (3.0, "3"),
        (0.005, "0.005"),
        (131072, "131072"),
        (1e6, "1e+06"),
        (1050000, "1.05e+06"),
        (1e9, "1e+09"),
        (-2.5, "-2.5"),
    ],
)
def test_numbers_are_written_as_go_writes_them(number: float, text: str) -> None:
    assert format_number(number) == text


@given(st.floats(-1e15, 1e15))
def test_numbers_keep_their_value(number: float) -> None:
    assert float(format_number(number)) == pytest.approx(number, rel=1e-14, abs=0)


@given(st.dictionaries(st.tuples(label_values, label_values), st.integers(1, 10**9)))
def test_label_values_come_back(series: dict[tuple[str, str], int]) -> None:
    gauge = Gauge("g", "What it is.", ("a", "b"))
    for values, number in series.items():
        gauge.set(number, values)
    families = list(text_string_to_metric_families(expose([gauge]).decode()))
    assert {(s.labels["a"], s.labels["b"]): s.value for family in families for s in family.samples} == series


@given(st.lists(st.floats(0, 1e7), min_size=1))
def test_buckets_count_what_is_at_most_their_bound(observed: list[float]) -> None:
    histogram = Histogram("h", "What it is.", (), BOUNDS)
    for value in observed:
        histogram.observe(value)
    (family,) = text_string_to_metric_families(expose([histogram]).decode())
    found = {sample.labels.get("le", sample.name): sample.value for sample in family.samples}
    for bound, text in zip(BOUNDS, ("0.5", "1", "1e+06"), strict=True):
        assert found[text] == sum(value <= bound for value in observed)
    assert found["+Inf"] == found["h_count"] == len(observed)
    assert found["h_sum"] == pytest.approx(sum(observed))


def test_families_are_in_the_order_of_their_names_with_their_help() -> None:
    second, first = Counter("b_total", "Second."), Counter("a_total", "First.", ("x",))
    second.inc()
    first.inc("y")
    first.inc("y")
    assert expose([second, first]).decode() == (
        "# HELP a_total First.\n# TYPE a_total counter\n"
        'a_total{x="y"} 2\n'
        "# HELP b_total Second.\n# TYPE b_total counter\nb_total 1\n"
    )


def test_a_family_without_series_is_left_out() -> None:
    histogram = Histogram("h", "What it is.", ("x",), BOUNDS)
    histogram.series(("only made",))
    assert expose([Counter("c_total", "None yet."), histogram]) == b""


def test_the_number_of_label_values_is_checked() -> None:
    counter = Counter("c_total", "What it is.", ("x",))
    with pytest.raises(ValueError, match="c_total has the labels"):
        counter.inc("a", "b")
    with pytest.raises(ValueError, match="h has the labels"):
        Histogram("h", "What it is.", ("x",), BOUNDS).observe(1.0)
