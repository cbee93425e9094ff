"""Record what the service answers: `python -m tests.replay.record [DEPLOYMENT …]`.

For a new case, add its name and its requests to the file of a deployment first:
`"a name": [{"ask": {"target": "Encounter/1"}}]`. `follow` is a link of the answer before.
"""

import json
import logging
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from werkzeug import Response
from werkzeug.middleware.dispatcher import DispatcherMiddleware

from tests.app import provider
from tests.hospital_http import Api, answer, http_mapping_text, serving
from tests.redis_server import started_redis
from tests.serving import BASE_URL, FORM, Served, link, serve
from toolkit.contract.hospital import EDGES

DEPLOYMENTS = {
    "sqlite": ("sqlite", "full"),
    "http": ("http", "full"),
    "group-a": ("http", "group-a"),
    "group-b": ("sqlite", "group-b"),
}
"""Where the rows of each come from, and its profile."""

_RANDOM = re.compile(r"\b([a-z2-7]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})\b")
"""Ids of pages, cursors and the addresses of messages."""
_CHANGING = ("date", "content-length", "x-request-id")


@contextmanager
def running(redis_url: str, directory: Path) -> Iterator[Callable[[str], Served]]:
    """Yield a function that returns a deployment, begun when it is first asked for."""
    upstream = {"/keys": answer(provider.key_set(provider.rsa())), "/http": Api(EDGES)}
    with serving(DispatcherMiddleware(Response(status=404), upstream)) as url:

        @cache
        def deployment(name: str) -> Served:
            source, profile = DEPLOYMENTS[name]
            (folder := directory / name).mkdir()
            mapping = None
            if source == "http":
                text = http_mapping_text(EDGES)
                mapping = text.replace("{env: PAS_URL}", f"{url}/http")
            chosen = {"mapping": mapping, "profile": profile}
            return serve(EDGES, folder, redis_url, KEY_SET_URL=f"{url}/keys", **chosen)

        yield deployment


def replayed(served: Served, asks: Iterable[Any]) -> list[Any]:
    """Send requests one after the other; return them with the answers, without what is random."""
    exchanges: list[Any] = []
    names: dict[str, str] = {}

    def named(match: re.Match[str]) -> str:
        return names.setdefault(match[0], f"<{len(names) + 1}>")

    body: Any = None
    for ask in asks:
        target = ask["target"] if "target" in ask else link(body, ask["follow"])
        response = served.send(
            ask.get("method", "GET"),
            target.removeprefix(f"{BASE_URL}/"),
            headers=ask.get("headers", {}),
            data=ask.get("form"),
            content_type=FORM if "form" in ask else None,
        )
        body = json.loads(response.text) if response.text else None
        headers = {name.lower(): text for name, text in response.headers.items()}
        if "etag" in headers:
            headers["etag"] = "<digest>"
        if "allow" in headers:
            headers["allow"] = ", ".join(sorted(headers["allow"].split(", ")))
        shown = {
            "status": response.status_code,
            "headers": [
                f"{n}: {headers[n]}" for n in sorted({*headers} - {*_CHANGING})
            ],
            "body": _without_prose(body),
        }
        text = _RANDOM.sub(named, json.dumps(shown, ensure_ascii=False))
        exchanges.append({"ask": ask, **json.loads(text)})
    return exchanges


def _without_prose(part: Any) -> Any:
    if isinstance(part, list):
        return [_without_prose(item) for item in part]
    if not isinstance(part, dict):
        return part
    shown = {name: _without_prose(value) for name, value in part.items()}
    return {**shown, "diagnostics": "<text>"} if "diagnostics" in part else shown


def file_of(deployment: str) -> Path:
    """Return the file of the exchanges with a deployment, by case."""
    return Path(__file__).parent / "recorded" / f"{deployment}.json"


def main(names: list[str]) -> None:
    """Record the deployments of these names, all of them without one."""
    logging.disable()
    with (
        tempfile.TemporaryDirectory() as directory,
        started_redis() as redis,
        running(redis.url, Path(directory)) as deployment,
    ):
        for name in names or DEPLOYMENTS:
            cases = []
            for case, exchanges in json.loads(file_of(name).read_text("utf-8")).items():
                asks = [exchange["ask"] for exchange in exchanges]
                answers = replayed(deployment(name), asks)
                lines = ",\n".join(json.dumps(a, ensure_ascii=False) for a in answers)
                cases.append(f"{json.dumps(case, ensure_ascii=False)}: [\n{lines}\n]")
            text = ",\n".join(cases)
            file_of(name).write_text(f"{{\n{text}\n}}\n", "utf-8")
            print(f"{name}: {len(cases)} cases")


if __name__ == "__main__":
    main(sys.argv[1:])
