"""The bytes of a file as text: UTF-8 it has to be, and no larger than a person writes."""

from adapters.mapping.model import Mark
from adapters.mapping.problems import MappingError, MappingProblem

MAX_BYTES = 512 * 1024

_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""What the first two bytes are in what Windows calls Unicode."""


def decoded(data: bytes | str, file: str) -> str:
    """Return the text of a file; raises MappingError for what is not one."""
    if len(data) > MAX_BYTES:
        raise refusal(Mark(file, 1, 1), f"larger than {MAX_BYTES // 1024} KiB")
    if isinstance(data, str):
        return data
    if data.startswith(_UTF_16):
        text = "this file is written in UTF-16 ('Unicode'); save it as UTF-8"
        raise refusal(Mark(file, 1, 1), text)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8-sig", errors="replace")
        mark = mark_at(file, before, len(before))
        text = (
            f"the byte 0x{data[error.start]:02X} is not UTF-8; save the file as UTF-8"
        )
        raise refusal(mark, text) from error


def refusal(mark: Mark, text: str) -> MappingError:
    """Return the error of a file that cannot be read any further."""
    return MappingError([MappingProblem(mark, "", text)])


def mark_at(file: str, text: str, position: int) -> Mark:
    """Return the place of a character of a text."""
    before = text[:position]
    return Mark(file, before.count("\n") + 1, position - before.rfind("\n"))
