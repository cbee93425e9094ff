"""What Redis is told to do with a page, and whether what it says is an answer to that."""

from collections.abc import Iterable
from typing import TypeAlias

Command: TypeAlias = tuple[str | bytes | int, ...]

PAGE = b"page"
CURSOR_LENGTH = 32

# One command: whatever breaks off, or is dropped meanwhile, nothing is there without its end.
_KEEP = """
redis.call('HSET', KEYS[1], 'page', ARGV[1])
redis.call('EXPIRE', KEYS[1], ARGV[2])
local links = {}
for at = 3, #ARGV, 2 do
  redis.call('HSETNX', KEYS[1], ARGV[at], ARGV[at + 1])
  table.insert(links, redis.call('HGET', KEYS[1], ARGV[at]))
end
return links
"""


def keep(
    page_id: str, sealed: bytes, life: int, links: Iterable[tuple[bytes, bytes]]
) -> Command:
    """Return what keeps a page so long, with links by their places, and answers these.

    A link that is there already stays as it is.
    """
    told = [part for link in links for part in link]
    return ("EVAL", _KEEP, 1, _key(page_id), sealed, life, *told)


def load(page_id: str) -> Command:
    """Return what answers all that is kept of a page."""
    return ("HGETALL", _key(page_id))


def end(page_id: str, seconds: int) -> Command:
    """Return what has Redis forget a page in so many seconds."""
    return ("EXPIRE", _key(page_id), seconds)


def is_page(raw: object) -> bool:
    """Tell whether that is an answer to `load`."""
    return (
        isinstance(raw, list)
        and len(raw) % 2 == 0
        and all(isinstance(each, bytes) for each in raw)
    )


def are_links(raw: object, count: int) -> bool:
    """Tell whether that is an answer to `keep`."""
    return isinstance(raw, list) and len(raw) == count and all(map(_is_link, raw))


def _is_link(raw: object) -> bool:
    return (
        isinstance(raw, bytes)
        and raw[:CURSOR_LENGTH].isalnum()
        and len(raw) > CURSOR_LENGTH
    )


def _key(page_id: str) -> str:
    return f"page:{page_id}"
