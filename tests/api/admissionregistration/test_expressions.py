"""Laws of admission's expressions: conditions, variables, and what mutations build."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from steersman.api.admissionregistration.expressions import AdmissionVariables
from steersman.api.admissionregistration.judging import Judge
from steersman.api.admissionregistration.matching import compile_conditions
from steersman.api.admissionregistration.mutating import Mutator, compile_mutator
from steersman.apimachinery.apply.typed import TypeView, from_crd, object_meta
from steersman.apimachinery.schema.cel.library.authorization import Authorizer, Decision, Question, ResourceCheck

REQUEST = {"operation": "CREATE", "name": "one"}
WORDS = {"true": "true", "false": "false", "error": "object.nothing == 1"}
VALUES = st.one_of(st.integers(-(2**31), 2**31), st.text(max_size=5), st.booleans())
NAMES = st.from_regex(r"x[a-zA-Z0-9]{0,6}", fullmatch=True)
ANY = TypeView(object_meta({"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"type": "object"}}))


def variables(obj: Any, **more: Any) -> AdmissionVariables:
    return AdmissionVariables(object=obj, old_object=None, request=REQUEST, **more)


@given(st.lists(st.sampled_from(sorted(WORDS)), max_size=5))
def test_one_false_condition_decides_and_errors_count_only_without(words: list[str]) -> None:
    listed = [{"name": f"c{index}", "expression": WORDS[word]} for index, word in enumerate(words)]
    outcome = compile_conditions(listed).match(variables({}))
    if "false" in words:
        assert (outcome.matches, outcome.error, outcome.failed) == (False, "", f"c{words.index('false')}")
    elif "error" in words:
        assert not outcome.matches and outcome.error.count("no such key: nothing") == 1
    else:
        assert outcome.matches and not outcome.error


def test_different_errors_are_told_as_a_list() -> None:
    listed = [{"name": name, "expression": f"object.{name}"} for name in "ab"]
    outcome = compile_conditions([*listed, {"name": "c", "expression": "object.c == 1"}]).match(variables({}))
    unfit = "compilation error: must evaluate to bool but got dyn"
    assert outcome.error == f"[{unfit}, expression 'object.c == 1' resulted in error: no such key: c]"


class Counting:
    def __init__(self) -> None:
        self.questions: list[Question] = []

    def __call__(self, question: Question) -> Decision:
        self.questions.append(question)
        return Decision(True, "because")


def asking(spec: dict[str, Any], obj: Any = None) -> tuple[Any, int]:
    counting = Counting()
    given = variables(obj or {}, authorizer=Authorizer(counting), request_resource=ResourceCheck(counting, Question()))
    return Judge(spec).judge(given), len(counting.questions)


def test_a_variable_is_evaluated_once_and_only_if_it_is_read() -> None:
    asks = {"name": "asked", "expression": "authorizer.path('/x').check('get').allowed()"}
    reading = [{"expression": "variables.asked"}, {"expression": "variables.asked || false"}]
    assert asking({"variables": [asks], "validations": reading})[1] == 1
    assert asking({"variables": [asks], "validations": [{"expression": "true || variables.asked"}]})[1] == 0


def test_a_message_cannot_ask_the_authorizer_through_a_variable() -> None:
    asks = {"name": "asked", "expression": "authorizer.path('/x').check('get').allowed()"}
    validation = {"expression": "false", "message": "no", "messageExpression": "string(variables.asked)"}
    verdict, asked = asking({"variables": [asks], "validations": [validation]})
    assert [decision.message for decision in verdict.decisions] == ["no"] and asked == 0


@given(st.lists(st.booleans(), min_size=1, max_size=4), st.booleans())
def test_failures_deny_unless_they_are_ignored_and_refusals_always_do(errs: list[bool], ignores: bool) -> None:
    validations = [{"expression": WORDS["error" if error else "false"]} for error in errs]
    verdict, _ = asking({"validations": validations, "failurePolicy": "Ignore" if ignores else "Fail"})
    assert [decision.denied for decision in verdict.decisions] == [not error or not ignores for error in errs]


def test_annotations_are_published_unless_they_are_blank_or_null() -> None:
    values = {"a": "' x '", "b": "'  '", "c": "null"}
    listed = [{"key": key, "valueExpression": value} for key, value in values.items()]
    verdict, _ = asking({"auditAnnotations": listed})
    assert verdict.annotations == [("a", "x")] and not verdict.failures


def mutator(kind: str, expression: str) -> Mutator:
    key = "jsonPatch" if kind == "JSONPatch" else "applyConfiguration"
    return compile_mutator({"mutations": [{"patchType": kind, key: {"expression": expression}}]})


def made(kind: str, expression: str, obj: Any, view: TypeView = ANY) -> Any:
    (mutation,) = mutator(kind, expression).mutations
    return mutation.made(variables(obj), view)


@given(st.text(max_size=8), VALUES)
def test_an_escaped_key_is_the_key(key: str, value: Any) -> None:
    expression = "[JSONPatch{op: 'add', path: '/map/' + jsonpatch.escapeKey(object.key), value: object.value}]"
    obj = {"key": key, "value": value, "map": {}}
    assert made("JSONPatch", expression, obj) == {**obj, "map": {key: value}} and obj["map"] == {}


@given(st.floats(allow_nan=False, allow_infinity=False, width=32) | st.integers(-(2**53) + 1, 2**53 - 1))
def test_numbers_of_json_patches_are_those_of_json(number: float) -> None:
    patched = made("JSONPatch", "[JSONPatch{op: 'add', path: '/b', value: object.a}]", {"a": number})
    whole = float(number).is_integer() and -(2**63) <= number < 2**63
    assert patched["b"] == number and isinstance(patched["b"], int if whole else float)


@given(st.dictionaries(NAMES, VALUES, max_size=4), st.dictionaries(NAMES, VALUES, max_size=4))
def test_an_apply_configuration_sets_what_it_names_and_keeps_the_rest(
    stored: dict[str, Any], wanted: dict[str, Any]
) -> None:
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    view = from_crd(schema, ANY.root)
    obj = {"apiVersion": "x.io/v1", "kind": "X", "metadata": {"name": "a"}, "spec": stored}
    listed = ", ".join(f"{name}: dyn({_literal(value)})" for name, value in wanted.items())
    expression = f"Object{{spec: Object.spec{{{listed}}}}}"
    once = made("ApplyConfiguration", expression, obj, view)
    assert once == {**obj, "spec": {**stored, **wanted}}
    assert made("ApplyConfiguration", expression, once, view) == once


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return '"' + "".join(f"\\U{ord(char):08x}" for char in value) + '"'
