"""When a request has come, whatever the pieces that it comes in."""

from itertools import accumulate

import pytest

from app.operations.arrival import HEAD_BYTES, Arrival

MOST = 1000
POST = b"POST /body HTTP/1.1\r\nHost: x\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
TRAILER = b"4\r\nabcd\r\n1;a=b\r\ne\r\n0\r\nX-Sum: 1\r\n\r\n"

WHOLE = {
    "no body": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "no header": b"GET / HTTP/1.0\r\n\r\n",
    "an empty line first": b"\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "a length": POST + b"content-LENGTH:5 \r\n\r\nabcde",
    "no length to wait for": POST + b"Content-Length: 0\r\n\r\n",
    "the longest body": POST + b"Content-Length: 1000\r\n\r\n" + bytes(MOST),
    "chunks": CHUNKED + b"3\r\nabc\r\n0\r\n\r\n",
    "chunks and a trailer": CHUNKED + TRAILER,
    "the longest chunk": CHUNKED + b"3E8\r\n" + bytes(MOST) + b"\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("request_", WHOLE.values(), ids=WHOLE)
def test_it_has_come_with_its_last_byte(request_: bytes) -> None:
    arrival = Arrival(MOST)
    parts = list(accumulate(request_[at : at + 1] for at in range(len(request_))))
    assert [arrival.has_come(part) for part in parts[:-1]] == [False] * len(parts[:-1])
    assert not arrival.complete
    assert arrival.has_come(parts[-1])
    assert arrival.complete
    assert Arrival(MOST).has_come(request_)


@pytest.mark.parametrize("request_", WHOLE.values(), ids=WHOLE)
def test_what_follows_it_is_another_request(request_: bytes) -> None:
    arrival = Arrival(MOST)
    assert arrival.has_come(request_ + b"GET")
    assert arrival.complete


NOT_WAITED_FOR = {
    "a long head": b"GET / HTTP/1.1\r\nX-Y: " + bytes(HEAD_BYTES),
    "a bare line feed": b"GET / HTTP/1.1\nHost: x\n",
    "a long body": POST + b"Content-Length: 1001\r\n\r\n",
    "a huge length": POST + b"Content-Length: 99999999999999999999\r\n\r\n",
    "two lengths": POST + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\na",
    "a length and chunks": POST
    + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    "a length that is none": POST + b"Content-Length: +1\r\n\r\na",
    "a long chunk": CHUNKED + b"3e9\r\n",
    "many chunks": CHUNKED + b"1\r\na\r\n" * MOST + b"1\r\n",
    "much between chunks": CHUNKED + (b"1;" + b"a" * 200 + b"\r\na\r\n") * 700,
    "a chunk without a size": CHUNKED + b"zz\r\n",
    "a long line of a chunk": CHUNKED + b"1;" + b"a" * 300,
    "a long trailer": CHUNKED + b"0\r\nX-Y: " + bytes(HEAD_BYTES),
}


@pytest.mark.parametrize("request_", NOT_WAITED_FOR.values(), ids=NOT_WAITED_FOR)
def test_nobody_waits_for_what_is_refused_anyway(request_: bytes) -> None:
    arrival = Arrival(MOST)
    assert arrival.has_come(request_)
    assert not arrival.complete


LONGEST = {
    "a head": b"GET / HTTP/1.1\r\nX-Y: ".ljust(HEAD_BYTES, b"a"),
    "a trailer": CHUNKED + b"0\r\nX-Y: ".ljust(HEAD_BYTES, b"a"),
}


@pytest.mark.parametrize("request_", LONGEST.values(), ids=LONGEST)
def test_the_longest_is_waited_for(request_: bytes) -> None:
    assert not Arrival(MOST).has_come(request_)
    assert Arrival(MOST).has_come(request_ + b"a")


@pytest.mark.parametrize("request_", NOT_WAITED_FOR.values(), ids=NOT_WAITED_FOR)
def test_of_chunks_it_tells_that_they_are_too_long(request_: bytes) -> None:
    arrival = Arrival(MOST)
    arrival.has_come(request_)
    long = ("a long chunk", "many chunks", "much between chunks")
    assert arrival.has_long_chunks == (request_ in map(NOT_WAITED_FOR.get, long))


GO_AHEAD = b"Expect: 100-Continue\r\nContent-Length: 3\r\n\r\n"


@pytest.mark.parametrize("before", [b"", b"\r\n"], ids=["", "an empty line first"])
def test_a_client_that_waits_is_let_go_ahead_for_a_body_that_is_read(
    before: bytes,
) -> None:
    arrival = Arrival(MOST)
    assert not arrival.has_come(before + POST + GO_AHEAD)
    assert arrival.wants_go_ahead
    assert arrival.has_come(before + POST + GO_AHEAD + b"abc")
    assert not arrival.wants_go_ahead


@pytest.mark.parametrize(
    "request_",
    [
        (POST + GO_AHEAD).replace(b"1.1", b"1.0"),
        (POST + GO_AHEAD).replace(b": 3", b": 1001"),
        POST + GO_AHEAD + b"abc",
        POST + GO_AHEAD.partition(b"\r\n")[2] + b"a",
        (POST + GO_AHEAD)[:-2],
    ],
    ids=["HTTP/1.0", "too long", "it does not wait", "it has not asked", "half a head"],
)
def test_others_are_not(request_: bytes) -> None:
    arrival = Arrival(MOST)
    arrival.has_come(request_)
    assert not arrival.wants_go_ahead
