import pytest

from steersman.apimachinery.errors import Unauthorized
from steersman.apiserver.authn.authenticator import Authenticator, BearerTokens, bearer_token, header_warning
from steersman.apiserver.authn.tokens import StaticTokens
from steersman.apiserver.authn.user import ANONYMOUS_USER, UserInfo, with_authenticated_group
from steersman.net.http import Request

STATIC = StaticTokens({"good": UserInfo("ann", "1", ("devs",)), "plain": UserInfo("bob", "2")})


def request(authorization: str | None = None, path: str = "/api") -> Request:
    headers = {} if authorization is None else {"authorization": authorization}
    return Request("GET", path, "", headers)


class Refuses:
    async def authenticate(self, request: Request) -> UserInfo | None:
        raise Unauthorized("this certificate has expired")

    def authenticate_token(self, token: str) -> UserInfo | None:
        raise Unauthorized("this token has expired")


class Knows:
    def __init__(self, user: UserInfo) -> None:
        self.user = user

    async def authenticate(self, request: Request) -> UserInfo | None:
        return self.user


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        ("bEARER abc", "abc"),
        ("  Bearer abc  ", "abc"),
        ("Bearer abc trailing words", "abc"),
        ("Bearer   abc", None),
        ("Bearer", None),
        ("Bearer ", None),
        ("Basic abc", None),
        ("abc", None),
        ("", None),
    ],
)
def test_bearer_token(header: str, token: str | None) -> None:
    assert bearer_token(header) == token


def test_extra_space_is_warned_about() -> None:
    assert header_warning("Bearer   abc") == (
        "the provided Authorization header contains extra space before the bearer token, and is ignored"
    )
    assert header_warning("Bearer abc") is None
    assert header_warning("Basic  abc") is None


async def test_a_known_token_is_its_user_who_is_authenticated() -> None:
    authenticator = Authenticator([BearerTokens([STATIC])])
    assert await authenticator.authenticate(request("Bearer good")) == UserInfo(
        "ann", "1", ("devs", "system:authenticated")
    )
    assert (await authenticator.authenticate(request("Bearer plain"))).groups == ("system:authenticated",)
    assert await authenticator.authenticate(request("Bearer good")) is await authenticator.authenticate(
        request("Bearer good")
    )


@pytest.mark.parametrize("path", ["/api", "/readyz"])
@pytest.mark.parametrize("anonymous", [True, False, ["/readyz"]])
async def test_a_bad_token_is_never_anonymous(anonymous: bool | list[str], path: str) -> None:
    authenticator = Authenticator([BearerTokens([STATIC])], anonymous=anonymous)
    with pytest.raises(Unauthorized) as caught:
        await authenticator.authenticate(request("Bearer wrong", path))
    assert caught.value.to_status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }


@pytest.mark.parametrize("header", [None, "", "Basic YTpi", "Bearer  good"])
async def test_without_a_credential_a_request_is_anonymous_where_that_is_allowed(header: str | None) -> None:
    everywhere = Authenticator([BearerTokens([STATIC])], anonymous=True)
    health = Authenticator([BearerTokens([STATIC])], anonymous=["/readyz"])
    nowhere = Authenticator([BearerTokens([STATIC])])
    assert await everywhere.authenticate(request(header)) == ANONYMOUS_USER
    assert await health.authenticate(request(header, "/readyz")) == ANONYMOUS_USER
    with pytest.raises(Unauthorized):
        await health.authenticate(request(header))
    with pytest.raises(Unauthorized):
        await nowhere.authenticate(request(header, "/readyz"))


async def test_the_first_that_knows_the_user_decides() -> None:
    authenticator = Authenticator([Knows(UserInfo("cert")), BearerTokens([STATIC])])
    assert (await authenticator.authenticate(request("Bearer good"))).name == "cert"


async def test_a_failure_does_not_keep_a_later_authenticator_from_succeeding() -> None:
    authenticator = Authenticator([Refuses(), BearerTokens([Refuses(), STATIC])], anonymous=True)
    assert (await authenticator.authenticate(request("Bearer good"))).name == "ann"
    with pytest.raises(Unauthorized, match=r"^Unauthorized$"):
        await authenticator.authenticate(request())


@pytest.mark.parametrize(
    "user",
    [
        UserInfo("system:anonymous"),
        UserInfo("ann", groups=("system:authenticated", "x")),
        UserInfo("ann", groups=("system:unauthenticated",)),
    ],
)
def test_who_is_not_added_to_the_authenticated(user: UserInfo) -> None:
    assert with_authenticated_group(user) is user


async def test_users_who_differ_in_extra_alone_are_kept_apart() -> None:
    one, other = (UserInfo("ann", extra={"scope": (scope,)}) for scope in ("a", "b"))
    for user in (one, other):
        assert (await Authenticator([Knows(user)]).authenticate(request())).extra == user.extra


def test_user_info_as_an_object_leaves_out_what_is_empty() -> None:
    assert UserInfo("ann").to_dict() == {"username": "ann"}
    assert UserInfo("ann", "1", ("g",), {"k": ("v",)}).to_dict() == {
        "username": "ann",
        "uid": "1",
        "groups": ["g"],
        "extra": {"k": ["v"]},
    }
