"""Binary keys as text: hexadecimal digits, or a UUID whose bytes have one of two orders."""

import re
from enum import StrEnum

_DIGITS = re.compile(r"(?:[0-9a-f]{2})+")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_UUID_BYTES = 16


class BinaryForm(StrEnum):
    """How the bytes of a key are written: SWAPPED is MySQL's UUID_TO_BIN(…, 1)."""

    HEX = "hex"
    UUID = "uuid"
    SWAPPED = "uuid-swapped"


def text_of(value: bytes, form: BinaryForm) -> str:
    """Return the text of a binary key; raises ValueError where it has none."""
    digits = value.hex()
    if form is BinaryForm.HEX:
        return digits
    if len(value) != _UUID_BYTES:
        raise ValueError(f"{len(value)} bytes, where a UUID has {_UUID_BYTES}")
    if form is BinaryForm.SWAPPED:
        digits = f"{digits[8:16]}{digits[4:8]}{digits[:4]}{digits[16:]}"
    groups = digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]
    return "-".join(groups)


def bytes_of(text: str, form: BinaryForm) -> tuple[bytes, ...]:
    """Return the key that a text stands for; empty for a text that `text_of` never returns.

    Such as one with capitals, braces or another length.
    """
    if not (_DIGITS if form is BinaryForm.HEX else _UUID).fullmatch(text):
        return ()
    digits = text.replace("-", "")
    if form is BinaryForm.SWAPPED:
        digits = f"{digits[12:16]}{digits[8:12]}{digits[:8]}{digits[16:]}"
    return (bytes.fromhex(digits),)
