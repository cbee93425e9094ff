"""The deployments that are replayed: one hospital in a database and behind an API, by profile."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from flask import Flask
from werkzeug import Response
from werkzeug.middleware.dispatcher import DispatcherMiddleware

from tests.app import provider
from tests.hospital_http import Api, answer, serving
from tests.hospital_http_mapping import http_mapping_text
from tests.serving import serve
from toolkit.contract.hospital import EDGES

DEPLOYMENTS = {
    "sqlite": ("sqlite", "full"),
    "http": ("http", "full"),
    "group-a": ("http", "group-a"),
    "group-b": ("sqlite", "group-b"),
}
"""Where the rows of each come from, and its profile."""

Running = Callable[[str], Flask]
"""Returns the service of a deployment, made when it is first asked for."""


@contextmanager
def running(redis_url: str, directory: Path) -> Iterator[Running]:
    """Let deployments run for a while, in a directory that is empty."""
    upstream = {"/keys": answer(provider.key_set(provider.rsa())), "/http": Api(EDGES)}
    with serving(DispatcherMiddleware(Response(status=404), upstream)) as url:

        @cache
        def application(name: str) -> Flask:
            source, profile = DEPLOYMENTS[name]
            (folder := directory / name).mkdir()
            mapping = None
            if source == "http":
                text = http_mapping_text(EDGES)
                mapping = text.replace("{env: PAS_URL}", f"{url}/http")
            served = serve(
                EDGES,
                folder,
                redis_url,
                mapping=mapping,
                profile=profile,
                KEY_SET_URL=f"{url}/keys",
                CLIENT_REQUESTS_PER_MINUTE="off",
                ADDRESS_REQUESTS_PER_MINUTE="off",
            )
            return served.app

        yield application
