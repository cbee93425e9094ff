"""What comes before and after views: as Flask has it, but for what the service leaves out."""

from collections.abc import Callable

import pytest
from flask import Flask, Response, abort, request

from tests.serving import Served

REQUESTS = (
    ("GET", "/fine"),
    ("HEAD", "/fine"),
    ("OPTIONS", "/fine"),
    ("POST", "/fine"),
    ("GET", "/nowhere"),
    ("GET", "/aborts"),
    ("GET", "/fails"),
    ("GET", "/fine?answered=1"),
    ("GET", "/fine?before=1"),
    ("GET", "/fine?after=1"),
)


def test_no_hook_belongs_to_a_part_of_the_service(served: Served) -> None:
    """One would not be called: `app.application` knows those of the whole alone."""
    app = served.app
    for hooks in (
        app.before_request_funcs,
        app.after_request_funcs,
        app.teardown_request_funcs,
    ):
        assert list(hooks) == [None]
    assert not app.url_value_preprocessors


@pytest.mark.parametrize(("method", "path"), REQUESTS)
def test_hooks_are_called_in_the_order_of_flask(
    served: Served, method: str, path: str
) -> None:
    kinds: tuple[type[Flask], ...] = (Flask, type(served.app))
    of_flask, ours = (called(kind("hooked"), method, path) for kind in kinds)
    assert ours == of_flask
    assert len(ours) > 4


def called(app: Flask, method: str, path: str) -> list[str]:
    """Return what was called for a request, and the status of its answer."""
    calls: list[str] = []
    for name in ("first", "second"):
        app.before_request(_before(name, calls))
        app.after_request(_after(name, calls))
        app.teardown_request(_end(name, calls))
    app.add_url_rule("/fine", view_func=lambda: "fine", endpoint="fine")
    app.add_url_rule("/aborts", view_func=lambda: abort(418), endpoint="aborts")
    app.add_url_rule("/fails", view_func=lambda: 1 // 0, endpoint="fails")
    answer = app.test_client().open(path, method=method)
    return [*calls, answer.status]


def _before(name: str, calls: list[str]) -> Callable[[], str | None]:
    def before() -> str | None:
        calls.append(f"before {name}")
        if "before" in request.args:
            raise ValueError
        return name if "answered" in request.args else None

    return before


def _after(name: str, calls: list[str]) -> Callable[[Response], Response]:
    def after(response: Response) -> Response:
        calls.append(f"after {name} {response.status}")
        if "after" in request.args:
            raise ValueError
        return response

    return after


def _end(name: str, calls: list[str]) -> Callable[[BaseException | None], None]:
    return lambda error: calls.append(f"end {name} {type(error).__name__}")
