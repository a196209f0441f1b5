"""What a store in etcd promises beyond the conformance suite: others who write, members that fail, TLS, users."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest
import trustme

from steersman.net.grpc import Channel
from steersman.store.conformance import Recorder, fails, put
from steersman.store.etcd import EtcdStore, parse_url
from steersman.store.etcd import messages as pb
from steersman.store.history import History
from steersman.store.interface import (
    Compacted,
    CompareFailed,
    KeyValue,
    Premises,
    PremisesChanged,
    StoreError,
    StoreUnavailable,
    UnknownOutcome,
)
from steersman.store.urls import Credentials, open_store

from .. import etcd
from .proxy import Proxy, proxy

KEPT = History(revisions=1_000_000)
ALL = (b"", b"\xff")


@pytest.fixture(scope="session")
def newest() -> Path:
    return etcd.program()


@pytest.fixture(params=[etcd.NEWEST, etcd.DEBIAN])
def any_version(request: pytest.FixtureRequest) -> Path:
    return etcd.program(request.param)


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as opened:
        yield opened


async def opened(stack: AsyncExitStack, url: str, credentials: Credentials | None = None) -> EtcdStore:
    store = await open_store(url, history=KEPT, credentials=credentials)
    stack.push_async_callback(store.close)
    assert isinstance(store, EtcdStore)
    return store


async def eventually(look: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await look():  # noqa: ASYNC110 - it happens in another process
            await asyncio.sleep(0.02)


async def test_what_others_write_is_there_after_settling(
    any_version: Path, tmp_path: Path, stack: AsyncExitStack
) -> None:
    cluster = await stack.enter_async_context(etcd.etcd(any_version, tmp_path))
    one, other = await opened(stack, cluster.url), await opened(stack, cluster.url)
    recorder = Recorder()
    other.watch(*ALL, 0, recorder.deliver)
    for number in range(50):
        revision = await one.swap(b"a", one.revision if number else 0, b"%d" % number)
        await other.settle()
        assert recorder.revisions[-1] == other.revision == revision
    error = await fails(other.swap(b"a", 2, b"lost"), CompareFailed)
    assert isinstance(error, CompareFailed) and error.current is not None and error.current.value == b"49"


async def test_prefixes_are_worlds_of_their_own(any_version: Path, tmp_path: Path, stack: AsyncExitStack) -> None:
    cluster = await stack.enter_async_context(etcd.etcd(any_version, tmp_path))
    one, other = await opened(stack, f"{cluster.url}/one"), await opened(stack, f"{cluster.url}/other/")
    all_of = await opened(stack, cluster.url)
    mine, theirs = Recorder(), Recorder()
    one.watch(*ALL, 0, mine.deliver)
    for number in range(20):
        await put(one, b"/registry/a", b"%d" % number)
        await put(other, b"/registry/a", b"other %d" % number)
        await other.settle()
        await one.settle()
        assert one.revision >= other.revision - 1
    other.watch(b"/registry/", b"/registry0", (await other.range(*ALL)).items[0].create_revision, theirs.deliver)
    assert [event.value for event in await theirs.until(20)] == [b"other %d" % number for number in range(20)]
    assert [event.value for event in mine.events if event.key == b"/registry/a"] == [b"%d" % n for n in range(20)]
    inner = [item.key for item in (await all_of.range(*ALL)).items if b"registry" in item.key]
    assert inner == [b"/one/registry/a", b"/other/registry/a"]


async def test_a_range_of_large_values_is_read_in_pages(newest: Path, tmp_path: Path, stack: AsyncExitStack) -> None:
    cluster = await stack.enter_async_context(etcd.etcd(newest, tmp_path))
    store = await opened(stack, cluster.url)
    large = bytes(256 * 1024)
    await asyncio.gather(*(store.swap(b"k%03d" % number, 0, large) for number in range(130)))
    found = await store.range(*ALL)
    assert (len(found.items), found.count, found.more) == (130, 130, False)
    assert all(item.value == large for item in found.items)
    error = await fails(store.swap(b"huge", 0, bytes(1800 * 1024)), StoreUnavailable)
    assert "request is too large" in str(error)


async def test_members_take_over_from_each_other(newest: Path, tmp_path: Path, stack: AsyncExitStack) -> None:
    cluster = await stack.enter_async_context(etcd.etcd(newest, tmp_path, members=3))
    store = await opened(stack, cluster.url)
    recorder = Recorder()
    store.watch(*ALL, 0, recorder.deliver)
    written: list[int] = []

    async def write(number: int) -> None:
        expected = 0
        for step in range(30):
            try:
                expected = await store.swap(b"k%d" % number, expected, b"%d" % step)
                written.append(expected)
            except UnknownOutcome:
                found = await store.get(b"k%d" % number)
                expected = found.mod_revision if found is not None else 0

    writers = [asyncio.create_task(write(number)) for number in range(8)]
    for member in cluster.members[:2]:
        before = len(written)
        await member.kill()
        await eventually(lambda reached=before + 10: _has(written, reached))
        await member.start()
        await member.until_it_listens()
    await asyncio.gather(*writers)
    await store.settle()
    assert recorder.revisions == sorted(recorder.revisions)
    assert set(written) <= set(recorder.revisions), "every acknowledged write has been told of"
    held = {item.key: item.mod_revision for item in (await store.range(*ALL)).items}
    assert held == {event.key: event.revision for event in recorder.events}


async def test_history_is_told_once_there_is_a_leader_again(
    newest: Path, tmp_path: Path, stack: AsyncExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    """A member without a leader ends a watch as soon as it is asked for one."""
    cluster = await stack.enter_async_context(etcd.etcd(newest, tmp_path, members=3))
    whole = await opened(stack, cluster.url)
    for number in range(5):
        await put(whole, b"a", b"%d" % number)
    first, *others = cluster.members
    stores: list[EtcdStore] = []

    async def opens() -> bool:
        with suppress(StoreUnavailable):
            stores.append(await opened(stack, f"etcd://{first.address}"))
        return bool(stores)

    await eventually(opens)
    [store] = stores
    for member in others:
        await member.kill()
    await eventually(lambda: _is(store.trouble() is not None))
    recorder = Recorder()
    caplog.set_level("INFO")
    store.watch(*ALL, 2, recorder.deliver)
    await eventually(lambda: _is("history is read from another member" in caplog.text))
    for member in others:
        await member.start()
    assert [event.value for event in await recorder.until(5)] == [b"%d" % number for number in range(5)]


async def _has(written: list[int], number: int) -> bool:
    return len(written) >= number


async def test_the_store_tells_what_is_wrong_and_that_it_is_over(
    newest: Path, tmp_path: Path, stack: AsyncExitStack
) -> None:
    cluster = await stack.enter_async_context(etcd.etcd(newest, tmp_path))
    [member] = cluster.members
    store = await opened(stack, cluster.url)
    await member.kill()
    await eventually(lambda: _is(store.trouble() is not None))
    assert store.trouble() == f"etcd cannot be used: {member.address}: connection refused"
    await member.start()
    await eventually(lambda: _is(store.trouble() is None))
    assert await put(store, b"a", b"1") == store.revision


async def _is(value: bool) -> bool:
    return value


async def disturbed(stack: AsyncExitStack, program: Path, directory: Path) -> tuple[Proxy, EtcdStore, EtcdStore]:
    """A store behind a proxy, and one that is not."""
    cluster = await stack.enter_async_context(etcd.etcd(program, directory))
    between = await stack.enter_async_context(proxy(cluster.members[0].port))
    return between, await opened(stack, between.url), await opened(stack, cluster.url)


async def test_a_watch_goes_on_without_a_gap(any_version: Path, tmp_path: Path, stack: AsyncExitStack) -> None:
    between, store, direct = await disturbed(stack, any_version, tmp_path)
    recorder = Recorder()
    store.watch(*ALL, 0, recorder.deliver, recorder.ended)
    for number in range(10):
        await put(direct, b"a", b"%d" % number)
        between.cut()
        await put(direct, b"b", b"%d" % number)
        between.mend()
    await recorder.until(20)
    assert recorder.revisions == list(range(2, 22)) and recorder.ends == []


async def test_a_member_that_says_nothing_any_more_is_left(newest: Path, tmp_path: Path, stack: AsyncExitStack) -> None:
    cluster = await stack.enter_async_context(etcd.etcd(newest, tmp_path))
    [member] = cluster.members
    between = await stack.enter_async_context(proxy(member.port))
    store = await opened(stack, f"{between.url},{member.address}")
    direct = await opened(stack, cluster.url)
    await put(direct, b"a", b"1")
    await store.settle()
    between.make_deaf()
    revision = await put(direct, b"a", b"2")

    async def settles() -> bool:
        with suppress(StoreUnavailable):
            await store.settle()
        return store.revision >= revision

    await eventually(settles)


async def test_what_was_missed_and_compacted_ends_the_watches(
    any_version: Path, tmp_path: Path, stack: AsyncExitStack
) -> None:
    between, store, direct = await disturbed(stack, any_version, tmp_path)
    before, after = Recorder(), Recorder()
    store.watch(*ALL, 0, before.deliver, before.ended)
    await put(direct, b"a", b"seen")
    await before.until(1)
    between.cut()
    for number in range(10):
        await put(direct, b"a", b"missed %d" % number)
    await direct.compact(direct.revision)
    between.mend()
    assert isinstance(await before.end(), Compacted)
    assert (store.revision, store.compacted) == (direct.revision, direct.compacted)
    found = await store.range(*ALL)
    store.watch(*ALL, found.revision + 1, after.deliver)
    await put(direct, b"a", b"new")
    assert [event.value for event in await after.until(1)] == [b"new"]


async def test_a_write_whose_answer_is_lost_is_not_taken_for_one_that_failed(
    newest: Path, tmp_path: Path, stack: AsyncExitStack
) -> None:
    """It was carried out; the attempt after it finds the key changed."""
    between, store, direct = await disturbed(stack, newest, tmp_path)
    first = await put(store, b"a", b"1")
    between.make_deaf()
    writing = asyncio.create_task(store.swap(b"a", first, b"2"))
    await eventually(lambda: _holds(direct, b"a", b"2"))
    between.cut()
    between.make_hear()
    between.mend()
    await fails(writing, UnknownOutcome)
    assert (await fails(store.swap(b"a", first, b"3"), CompareFailed)).args


async def test_a_write_whose_answer_is_lost_stays_in_doubt_when_the_history_is_compacted(
    newest: Path, tmp_path: Path, stack: AsyncExitStack
) -> None:
    """Nobody can tell any more who has changed the key."""
    between, store, direct = await disturbed(stack, newest, tmp_path)
    first = await put(store, b"a", b"1")
    between.make_deaf()
    writing = asyncio.create_task(store.swap(b"a", first, b"2"))
    await eventually(lambda: _holds(direct, b"a", b"2"))
    between.cut()
    between.make_hear()
    await put(direct, b"a", b"3")
    await direct.compact(direct.revision)
    between.mend()
    await fails(writing, UnknownOutcome)


async def test_a_write_that_another_has_overtaken_has_failed_even_if_its_first_attempt_was_not_answered(
    newest: Path, tmp_path: Path, stack: AsyncExitStack
) -> None:
    between, store, direct = await disturbed(stack, newest, tmp_path)
    first = await put(store, b"a", b"1")
    await direct.settle()
    between.cut()
    writing = asyncio.create_task(store.swap(b"a", first, b"2"))
    await direct.swap(b"a", first, b"other")
    between.mend()
    error = await fails(writing, CompareFailed)
    assert isinstance(error, CompareFailed) and error.current is not None and error.current.value == b"other"


async def _holds(store: EtcdStore, key: bytes, value: bytes) -> bool:
    found = await store.get(key)
    return found is not None and found.value == value


async def test_one_of_several_compacts(newest: Path, tmp_path: Path, stack: AsyncExitStack) -> None:
    cluster = await stack.enter_async_context(etcd.etcd(newest, tmp_path))
    often = History(revisions=5, seconds=1)
    stores = [await EtcdStore.open(parse_url(cluster.url), history=often) for _ in range(3)]
    for store in stores:
        stack.push_async_callback(store.close)

    async def compacted() -> bool:
        await put(stores[0], b"a", b"again")
        return all(store.compacted > 10 for store in stores)

    await eventually(compacted)
    for store in stores:
        assert store.compacted <= store.revision - 5
        await fails(store.range(*ALL, revision=2), Compacted)
    found = await stores[1].get(b"compact_rev_key")
    assert found is not None and int(found.value) <= stores[1].compacted


def files(authority: trustme.CA, *names: str, directory: Path) -> tuple[Path, Path]:
    issued = authority.issue_cert(*names)
    cert, key = directory / f"{names[0]}.crt", directory / f"{names[0]}.key"
    cert.write_bytes(issued.cert_chain_pems[0].bytes())
    key.write_bytes(issued.private_key_pem.bytes())
    return cert, key


async def test_tls_on_both_sides(newest: Path, tmp_path: Path, stack: AsyncExitStack) -> None:
    authority, other = trustme.CA(), trustme.CA()
    ca = tmp_path / "ca.crt"
    authority.cert_pem.write_to_path(ca)
    cert, key = files(authority, "127.0.0.1", directory=tmp_path)
    mine = [path.read_bytes() for path in files(authority, "root", directory=tmp_path)]
    tls = [f"--cert-file={cert}", f"--key-file={key}", f"--trusted-ca-file={ca}", "--client-cert-auth"]
    cluster = await stack.enter_async_context(etcd.etcd(newest, tmp_path, tls=tls))
    trusted = ca.read_bytes()
    store = await opened(stack, cluster.url, Credentials(ca=trusted, cert=mine[0], key=mine[1]))
    assert await put(store, b"a", b"1") == store.revision
    wrong = {
        "its certificate is not trusted (see --etcd-cafile)": Credentials(ca=other.cert_pem.bytes()),
        "perhaps it wants TLS (--etcd-cafile)": None,
    }
    for words, credentials in wrong.items():
        error = await fails(open_store(cluster.url, credentials=credentials), StoreUnavailable)
        assert words in str(error)
    await fails(open_store(cluster.url, credentials=Credentials(ca=trusted)), StoreUnavailable)


async def test_a_user_of_etcds_own(newest: Path, tmp_path: Path, stack: AsyncExitStack) -> None:
    cluster = await stack.enter_async_context(etcd.etcd(newest, tmp_path, "--auth-token-ttl=1"))
    await enable_authentication(cluster.members[0].address)
    store = await opened(stack, cluster.url, Credentials(user="root", password="secret"))
    recorder = Recorder()
    store.watch(*ALL, 0, recorder.deliver)
    started = asyncio.get_running_loop().time()

    async def outlived() -> bool:
        await put(store, b"a", b"again")
        return asyncio.get_running_loop().time() > started + 2.5

    await eventually(outlived)  # tokens last a second: others were fetched
    await store.settle()
    assert recorder.revisions[-1] == store.revision
    for credentials, words in ((None, "it wants a user"), (Credentials(user="root", password="?"), "wrong user")):
        assert words in str(await fails(open_store(cluster.url, credentials=credentials), StoreUnavailable))


async def test_a_token_that_many_use_is_fetched_anew(newest: Path, tmp_path: Path, stack: AsyncExitStack) -> None:
    """Each new user of etcd's makes all tokens old, while calls are under way."""
    cluster = await stack.enter_async_context(etcd.etcd(newest, tmp_path, "--bcrypt-cost=4"))
    address = cluster.members[0].address
    await enable_authentication(address)
    store = await opened(stack, cluster.url, Credentials(user="root", password="secret"))
    over = False

    async def write(key: bytes) -> None:
        while not over:
            await put(store, key, b"again")

    writers = [asyncio.create_task(write(b"k%d" % number)) for number in range(5)]
    for number in range(12):
        await add_user(address, f"user{number}")
        before = store.revision
        await eventually(lambda before=before: asyncio.sleep(0, store.revision > before + 5))
    over = True
    await asyncio.gather(*writers)


def text(number: int, value: str) -> bytes:
    """A field of a protobuf message."""
    return bytes([number << 3 | 2, len(value)]) + value.encode()


async def add_user(address: str, name: str) -> None:
    host, _, port = address.partition(":")
    channel = Channel(host, int(port), None, connect_within=30)
    try:
        request = text(1, "root") + text(2, "secret")
        answer = await channel.unary("/etcdserverpb.Auth/Authenticate", request, timeout=30)
        token = pb.AuthenticateResponse.FromString(answer).token
        user = text(1, name) + text(2, "secret")
        await channel.unary("/etcdserverpb.Auth/UserAdd", user, timeout=30, metadata=[("token", token)])
    finally:
        await channel.close()


async def enable_authentication(address: str) -> None:
    host, _, port = address.partition(":")
    channel = Channel(host, int(port), None, connect_within=30)
    try:
        for method, body in (
            ("UserAdd", text(1, "root") + text(2, "secret")),
            ("UserGrantRole", text(1, "root") + text(2, "root")),
            ("AuthEnable", b""),
        ):
            await channel.unary(f"/etcdserverpb.Auth/{method}", body, timeout=30)
    finally:
        await channel.close()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("etcd://", "the host of an etcd member is missing"),
        ("etcd://a,,b", "the host of an etcd member is missing"),
        ("etcd://user:secret@host", "an etcd URL names no user"),
        ("etcd://host?tls=yes", "an etcd URL has no options"),
        ("etcd://host:port", "not an etcd URL"),
        ("etcd://127.0.0.1:1", "127.0.0.1:1: connection refused"),
        ("etcd://127.0.0.1:1,127.0.0.1:2", "127.0.0.1:1: connection refused; 127.0.0.1:2: connection refused"),
    ],
)
async def test_bad_urls(url: str, words: str) -> None:
    error = await fails(open_store(url), StoreError)
    assert words in str(error) and "secret" not in str(error) and "\n" not in str(error)


def test_urls() -> None:
    settings = parse_url("etcd://a,[::1]:99, b:1/x%20y/z/")
    assert (settings.endpoints, settings.root) == (("a:2379", "[::1]:99", "b:1"), "/x y/z")
    assert parse_url("etcd://a/").root == ""


def test_the_messages_are_compiled_from_their_source(tmp_path: Path) -> None:
    import sys

    from google.protobuf import descriptor_pb2

    source = Path(__file__).parents[2] / "src/steersman/store/etcd"
    out = tmp_path / "rpc.binpb"
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{source}", f"--descriptor_set_out={out}", "rpc.proto"]
    subprocess.run(command, check=True)
    compiled, kept = (
        descriptor_pb2.FileDescriptorSet.FromString(path.read_bytes()) for path in (out, source / "rpc.binpb")
    )
    assert compiled == kept, "run `make stubs`"


async def test_a_write_can_rest_on_more_than_its_key(newest: Path, tmp_path: Path, stack: AsyncExitStack) -> None:
    cluster = await stack.enter_async_context(etcd.etcd(newest, tmp_path))
    store, other = await opened(stack, cluster.url), await opened(stack, cluster.url)
    rule, say = b"/registry/rules/r", (b"/registry/says/", b"/registry/says0")
    written = await put(store, rule, b"1")

    def premises(at: int) -> Premises:
        return Premises(((rule, at),), (say,), store.revision)

    good = premises(written)
    first = await store.swap(b"/registry/a", 0, b"1", good)
    await put(other, b"/registry/b", b"of no concern")
    second = await store.swap(b"/registry/a", first, b"2", good)
    await fails(store.swap(b"/registry/a", first, b"3", good), CompareFailed)
    written = await put(other, rule, b"2")
    await fails(store.swap(b"/registry/a", second, b"3", good), PremisesChanged)
    assert store.revision >= written, "who tries again knows what has changed"
    good = premises(written)
    said = await put(other, b"/registry/says/s", b"no")
    await fails(store.swap(b"/registry/a", second, None, good), PremisesChanged)
    good = premises(written)
    await other.swap(b"/registry/says/s", said, None)
    second = await store.swap(b"/registry/a", second, b"3", good)  # what is gone has no say
    await other.swap(rule, written, None)
    await fails(store.swap(b"/registry/c", 0, b"1", good), PremisesChanged)
    assert [item.key for item in (await store.range(*ALL)).items] == [b"/registry/a", b"/registry/b"]
    assert await store.get(b"/registry/a") == KeyValue(b"/registry/a", b"3", first, second)


async def test_keys_with_a_lifetime_go_by_themselves(newest: Path, tmp_path: Path, stack: AsyncExitStack) -> None:
    cluster = await stack.enter_async_context(etcd.etcd(newest, tmp_path))
    store = await opened(stack, cluster.url)
    recorder = Recorder()
    store.watch(*ALL, 0, recorder.deliver)
    assert store.expire(b"/registry/events/", 1.0)
    await put(store, b"/registry/events/a", b"1")
    await put(store, b"/registry/events/b", b"1")
    await put(store, b"/registry/configmaps/c", b"1")
    await recorder.until(5)
    gone = [event.key for event in recorder.events[3:]]
    assert sorted(gone) == [b"/registry/events/a", b"/registry/events/b"]
    assert all(event.value is None for event in recorder.events[3:])
