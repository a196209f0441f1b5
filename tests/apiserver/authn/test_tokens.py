import hmac
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.apiserver.authn import tokens
from steersman.apiserver.authn.tokens import StaticTokens, TokenFileError, load_token_file, parse_token_file
from steersman.apiserver.authn.user import UserInfo


@pytest.mark.parametrize(
    ("line", "user"),
    [
        ("t,ann,1", UserInfo("ann", "1")),
        ("t,ann,1,", UserInfo("ann", "1", ("",))),
        ("t,ann,1,devs", UserInfo("ann", "1", ("devs",))),
        ('t,ann,1,"devs,ops"', UserInfo("ann", "1", ("devs", "ops"))),
        ("t,ann,1,devs,more,columns", UserInfo("ann", "1", ("devs",))),
        ('t,"an ""n""",1', UserInfo('an "n"', "1")),
        ('t,"two\nlines",1', UserInfo("two\nlines", "1")),
        ("\r\n\r\nt,ann,1\r\n\r\n", UserInfo("ann", "1")),
        ("t, ann ,1", UserInfo(" ann ", "1")),
    ],
)
def test_a_record_is_read_as_kube_apiserver_reads_it(line: str, user: UserInfo) -> None:
    assert parse_token_file(line, "f") == {"t": user}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t,ann", "token file 'f.csv', line 1: at least 3 columns (token, user name, user uid) are needed, found 2"),
        ("a,b,c\n\nsecret", "token file 'f.csv', line 3: at least 3 columns (token, user name, user uid) are needed, "),
        ('a,b"x,c', "token file 'f.csv', line 1: a bare \" in an unquoted field"),
        ('a,"b"x,c', "token file 'f.csv', line 1: a \" inside a quoted field is not doubled"),
        ('a,b,c\nsecret,"open,\nmore', "token file 'f.csv', line 3: a quoted field is not closed"),
    ],
)
def test_an_error_names_the_line_and_not_the_token(text: str, message: str) -> None:
    with pytest.raises(TokenFileError) as caught:
        parse_token_file(text, "f.csv")
    assert str(caught.value).startswith(message)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_empty_tokens_are_ignored_and_later_records_win(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, tokens.__name__):
        users = parse_token_file(",nobody,0\nsecret,ann,1\nsecret,bob,2\n", "f")
    assert users == {"secret": UserInfo("bob", "2")}
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert "secret" not in caplog.text


def test_a_file_is_loaded(tmp_path) -> None:
    path = tmp_path / "tokens.csv"
    path.write_text("t,zoë,1\n", encoding="utf-8")
    assert load_token_file(path).authenticate_token("t") == UserInfo("zoë", "1")


def test_a_file_that_cannot_be_read_is_a_one_line_error(tmp_path) -> None:
    with pytest.raises(TokenFileError, match=r"^token file '.*none' cannot be read: No such file or directory$"):
        load_token_file(tmp_path / "none")
    (tmp_path / "latin").write_bytes(b"t,\xff,1")
    with pytest.raises(TokenFileError, match=r"cannot be read: it is not UTF-8$"):
        load_token_file(tmp_path / "latin")


token = st.text(st.characters(blacklist_categories=("Cs",)), min_size=1, max_size=12)


@given(st.dictionaries(token, st.builds(UserInfo, token), max_size=8), token)
def test_just_the_known_tokens_are_accepted(users: dict[str, UserInfo], other: str) -> None:
    known = StaticTokens(users)
    assert {name: known.authenticate_token(name) for name in users} == users
    assert known.authenticate_token(other) == users.get(other)


fields = st.text(st.sampled_from('a,"\n é'), min_size=1, max_size=6)


@given(st.dictionaries(fields, st.tuples(fields, fields, st.lists(fields, max_size=2)), max_size=5))
def test_what_is_quoted_comes_back(records: dict[str, tuple[str, str, list[str]]]) -> None:
    def quoted(*values: str) -> str:
        return ",".join('"' + value.replace('"', '""') + '"' for value in values)

    text = "\n".join(quoted(key, name, uid, *groups) for key, (name, uid, groups) in records.items())
    expected = {
        key: UserInfo(name, uid, tuple(groups[0].split(",")) if groups else ())
        for key, (name, uid, groups) in records.items()
    }
    assert parse_token_file(text, "f") == expected


def test_a_miss_is_compared_like_a_hit(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []
    real = hmac.compare_digest

    def spy(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return real(one, other)

    monkeypatch.setattr(hmac, "compare_digest", spy)
    known = StaticTokens({"secret": UserInfo("ann")})
    assert known.authenticate_token("secret") is not None
    assert known.authenticate_token("guess") is None
    assert {len(one) for pair in compared for one in pair} == {32}
    assert len(compared) == 2


def test_tokens_are_not_kept_in_memory_as_text_and_digests_differ_between_processes() -> None:
    first, second = (StaticTokens({"secret": UserInfo("ann")}) for _ in range(2))
    assert first._users.keys() != second._users.keys()
    assert all(b"secret" not in digest for digest in first._users)
