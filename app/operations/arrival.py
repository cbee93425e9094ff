"""Whether all bytes of a request have come, so that no thread waits for a client.

Only the frame is looked at: where the head ends and how long the body is. What the bytes
mean, and what is wrong with them, is for gunicorn's parser to say: what has no clear frame
counts as come, and is refused there (RFC 9112, 6.3).
"""

import re
import sys

HEAD_BYTES = 65536
"""The longest head, and the longest trailer section, that is waited for."""

_CHUNK_LINE_BYTES = 256
_END = b"\r\n\r\n"
_HEAD = (b"HEAD ", b"\r\nHEAD ")
_FRAME = re.compile(rb"\r\n(?:content-length|transfer-encoding)[ \t]*:", re.I)
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,18})[ \t]*\r\n", re.I)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[^\r\n]*chunked[ \t]*\r\n", re.I)
# An empty line may come first (RFC 9112, 2.2).
_FIRST_LINE = re.compile(rb"(?:\r\n)?[^\r\n]+ HTTP/1\.1\r\n")
_GO_AHEAD = re.compile(rb"\r\nexpect:[ \t]*100-continue[ \t]*\r\n", re.I)
_CHUNK = re.compile(rb"([0-9a-f]{1,16})[ \t]*(?:;[^\r\n]*)?\r\n", re.I)


class Arrival:
    """How much of one request has come; bodies of up to `most_body` bytes are waited for.

    `complete` tells whether all of it is there, once `has_come` said so: it is not where
    the request is too long or broken. `has_long_chunks` tells that its chunks are more than
    is waited for: no header says so. `wants_go_ahead` tells whether the client waits for a
    100 before it sends the body (RFC 9110, 10.1.1), `is_head` whether its answer has no
    content (9.3.2).
    """

    def __init__(self, most_body: int) -> None:
        self.complete = False
        self.has_long_chunks = False
        self.wants_go_ahead = False
        self.is_head = False
        self._most_body = most_body
        self._at = 0
        self._length = 0
        self._chunked = False

    def has_come(self, data: bytes) -> bool:
        """Tell whether a thread can have it, of all bytes since its first."""
        self.is_head = data.startswith(_HEAD)
        if not self._at and not self._head_has_come(data):
            return len(data) > HEAD_BYTES or _has_bare_line_feed(data)
        come = self._chunks_have_come(data) if self._chunked else self._is_there(data)
        # What is too long is answered without its body.
        self.wants_go_ahead = self.wants_go_ahead and not come
        return come

    def _head_has_come(self, data: bytes) -> bool:
        end = data.find(_END)
        if end < 0:
            return False
        head, self._at = data[: end + 2], end + len(_END)
        frames, length = len(_FRAME.findall(head)), _LENGTH.search(head)
        self._chunked = frames == 1 and _CHUNKED.search(head) is not None
        if frames == 1 and length:
            self._length = int(length[1])
        elif frames and not self._chunked:
            # Several lengths, or none that is a number: nothing after it can be trusted.
            self._length = sys.maxsize
        self.wants_go_ahead = (
            frames == 1
            and _FIRST_LINE.match(head) is not None
            and _GO_AHEAD.search(head) is not None
        )
        return True

    def _is_there(self, data: bytes) -> bool:
        self.complete = len(data) >= self._at + self._length
        return self.complete or self._length > self._most_body

    def _chunks_have_come(self, data: bytes) -> bool:
        # What stands between the chunks is kept as well, and counts for no body.
        most = 2 * (HEAD_BYTES + self._most_body)
        while chunk := _CHUNK.match(data, self._at):
            size = int(chunk[1], 16)
            if size == 0:
                self.complete = data.find(_END, chunk.end() - 2) >= 0
                return self.complete or len(data) - self._at > HEAD_BYTES
            if self._length + size > self._most_body or self._at > most:
                self.has_long_chunks = True
                return True
            if len(data) < chunk.end() + size + 2:
                return False
            self._at, self._length = chunk.end() + size + 2, self._length + size
        rest = data[self._at : self._at + _CHUNK_LINE_BYTES]
        return b"\r\n" in rest or len(rest) == _CHUNK_LINE_BYTES


def _has_bare_line_feed(data: bytes) -> bool:
    return data.count(b"\n") != data.count(b"\r\n")
