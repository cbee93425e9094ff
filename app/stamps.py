"""Ids and cursors that this service, and nobody else, has issued (decision 11).

Random bytes, the time of issue and a short keyed digest of both and of what the text
belongs to: it says nothing, is as long whatever the search, and cannot be forged.
"""

import base64
import hmac
import re
import secrets
from collections.abc import Callable, Sequence
from hashlib import blake2b

_RANDOM_BYTES = 10
_TIME_BYTES = 4
_DIGEST_BYTES = 6
_FORM = re.compile(r"[a-z2-7]{32}", re.ASCII)


def derived_key(key: str, purpose: bytes) -> bytes:
    """Return a key for one purpose, made of a key of the settings."""
    return blake2b(key.encode(), digest_size=32, person=purpose).digest()


class Stamps:
    """Issues and recognises ids and cursors; `keys` as in the settings, the first issues."""

    def __init__(self, keys: Sequence[str], clock: Callable[[], float]) -> None:
        self._keys = tuple(derived_key(key, b"stamp") for key in keys)
        self._clock = clock

    def issue(self, *belonging: str) -> str:
        """Return a new text of 32 characters a-z and 2-7 that belongs to these."""
        issued = int(self._clock()).to_bytes(_TIME_BYTES)
        body = secrets.token_bytes(_RANDOM_BYTES) + issued
        digest = _digest(self._keys[0], body, belonging)
        return base64.b32encode(body + digest).decode().lower()

    def is_genuine(self, text: str, *belonging: str) -> bool:
        """Whether the text was issued here, for these."""
        raw = base64.b32decode(text.upper())
        body, digest = raw[:-_DIGEST_BYTES], raw[-_DIGEST_BYTES:]
        return any(
            hmac.compare_digest(_digest(key, body, belonging), digest)
            for key in self._keys
        )


def is_well_formed(text: str) -> bool:
    """Whether the text has the length and the alphabet of an issued one."""
    return _FORM.fullmatch(text) is not None


def _digest(key: bytes, body: bytes, belonging: Sequence[str]) -> bytes:
    parts = [part.encode() for part in belonging]
    text = b"".join(len(part).to_bytes(4) + part for part in parts)
    return blake2b(body + text, key=key, digest_size=_DIGEST_BYTES).digest()
