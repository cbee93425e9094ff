"""What is refused before the application is reached: by which answer, and without a wait."""

import json
import logging
import socket
from contextlib import suppress

import pytest
from gunicorn.http import errors

from app.operations.refusals import (
    REFUSALS,
    BrokenOffError,
    LateRequestError,
    refusal_of,
    refuse,
)

CANARY = "MARTIN-1987"

STATUSES: dict[type[Exception], int] = {
    errors.InvalidResponseHeader: 500,
    errors.InvalidResponseHeaderName: 500,
    errors.ConfigurationProblem: 500,
    errors.ForbiddenProxyRequest: 403,
    errors.LimitRequestLine: 414,
    errors.LimitRequestHeaders: 431,
    errors.ExpectationFailed: 417,
    errors.UnsupportedTransferCoding: 501,
    LateRequestError: 408,
    errors.ParseException: 400,
}


def test_each_refusal_has_its_status() -> None:
    assert {kind: answer.status for kind, answer in REFUSALS} == STATUSES
    assert refusal_of(BrokenOffError()).status == 400
    assert refusal_of(errors.InvalidHeader(CANARY)).status == 400
    assert refusal_of(KeyError(CANARY)).status == 500


def test_who_takes_no_refusal_is_not_waited_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    client, server = socket.socketpair()
    with client, server:
        server.settimeout(0)
        with suppress(BlockingIOError):
            while True:
                server.send(bytes(65536))
        server.settimeout(None)
        refuse(server, LateRequestError(), 0, is_head=False)
    assert [line.getMessage() for line in caplog.records] == [
        "request refused",
        "refusal not sent",
    ]


def test_a_refusal_shows_nothing_that_was_sent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    client, server = socket.socketpair()
    with client, server:
        refuse(server, errors.InvalidHeader(CANARY), 5, is_head=False)
        head, _, body = client.recv(65536).decode("ascii").partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 400 Bad Request\r\n")
    assert json.loads(body)["issue"][0]["code"] == "structure"
    (line,) = caplog.records
    assert vars(line)["data"]["reason"] == "InvalidHeader"
    assert CANARY not in f"{head}{body}{vars(line)}"


def test_a_fault_of_ours_is_an_error_of_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    client, server = socket.socketpair()
    fault = KeyError(CANARY)
    with client, server:
        refuse(server, fault, 5, is_head=False)
        answered = client.recv(65536).decode("ascii")
    (line,) = caplog.records
    assert (line.levelno, line.getMessage()) == (logging.ERROR, "request failed")
    assert line.exc_info
    assert line.exc_info[1] is fault
    assert f"X-Request-Id: {vars(line)['data']['request_id']}\r\n" in answered
    assert CANARY not in answered
