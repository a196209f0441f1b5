from hypothesis import given
from hypothesis import strategies as st

from steersman.api.autoscaling.conversion import BEHAVIOR, METRICS, to_v1, to_v2

QUANTITIES = st.sampled_from(["1", "500m", "2Gi"])
SELECTORS = st.none() | st.just({"matchLabels": {"a": "b"}})


def present(**fields):
    return {key: value for key, value in fields.items() if value is not None}


@st.composite
def metrics(draw):
    metric = present(name=draw(st.sampled_from(["m", "n"])), selector=draw(SELECTORS))
    average = {"type": "AverageValue", "averageValue": draw(QUANTITIES)}
    utilization = {"type": "Utilization", "averageUtilization": draw(st.integers(1, 100))}
    value = {"type": "Value", "value": draw(QUANTITIES)}
    owner = {"kind": "Service", "name": "s", "apiVersion": "v1"}
    kind, source = draw(
        st.sampled_from(
            [
                ("Pods", {"metric": metric, "target": average}),
                ("Resource", {"name": "memory", "target": utilization}),
                ("Resource", {"name": "cpu", "target": average}),
                ("ContainerResource", {"name": "cpu", "container": "c", "target": utilization}),
                ("External", {"metric": metric, "target": value}),
                ("External", {"metric": metric, "target": average}),
                ("Object", {"describedObject": owner, "metric": metric, "target": value}),
            ]
        )
    )
    return {"type": kind, kind[:1].lower() + kind[1:]: source}


RULES = st.fixed_dictionaries(
    {"selectPolicy": st.sampled_from(["Max", "Min"])},
    optional={
        "stabilizationWindowSeconds": st.integers(0, 9),
        "policies": st.lists(
            st.fixed_dictionaries(
                {"type": st.just("Pods"), "value": st.integers(1, 9), "periodSeconds": st.integers(1, 9)}
            ),
            min_size=1,
            max_size=2,
        ),
    },
)


@given(
    st.lists(metrics(), min_size=1, max_size=3),
    st.none() | st.integers(1, 100),
    st.none() | st.fixed_dictionaries({"scaleUp": RULES, "scaleDown": RULES}),
    st.dictionaries(st.sampled_from(["x", "y"]), st.just("z")),
)
def test_nothing_is_lost_on_the_way_to_v1_and_back(others, cpu, behavior, annotations):
    cpu_metric = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}
    cpu_metric["resource"]["target"]["averageUtilization"] = cpu
    spec = {
        "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
        "minReplicas": 1,
        "maxReplicas": 3,
        "metrics": [*others, *([cpu_metric] if cpu else [])],
        **present(behavior=behavior),
    }
    meta = {"name": "a", **({"annotations": annotations} if annotations else {})}
    obj = {"kind": "HorizontalPodAutoscaler", "apiVersion": "autoscaling/v2", "metadata": meta, "spec": spec}
    old = to_v1(obj)
    assert old["spec"].get("targetCPUUtilizationPercentage") == cpu
    back = to_v2(old)
    assert (back["spec"], back["metadata"]) == (spec, meta)


def test_annotations_that_are_no_json_are_dropped():
    meta = {"name": "a", "annotations": {METRICS: "[", BEHAVIOR: "7"}}
    spec = {"scaleTargetRef": {}, "maxReplicas": 3, "targetCPUUtilizationPercentage": 5}
    obj = {"kind": "HorizontalPodAutoscaler", "apiVersion": "autoscaling/v1", "metadata": meta, "spec": spec}
    back = to_v2(obj)
    assert "annotations" not in back["metadata"]
    assert [metric["type"] for metric in back["spec"]["metrics"]] == ["Resource"]
    assert "behavior" not in back["spec"]
