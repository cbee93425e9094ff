"""What a setting is, and the kinds of values it can have: their names, ranges, readers."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from app import setting_readers as readers
from app.setting_readers import AUDIT_OFF, AUDIT_STDOUT, BASE_PATH

PREFIX = "ENCOUNTERS_"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value: its name, the values it takes, and the reader of its text."""

    name: str
    takes: str
    read: Callable[[str], object]


def whole(low: int, high: int) -> Kind:
    """A whole number from `low` to `high`."""

    return Kind(
        "whole number", f"{low} to {high}", _within(readers.read_whole, low, high)
    )


def whole_or_off(low: int, high: int) -> Kind:
    """A whole number from `low` to `high`, or none at all."""
    number = whole(low, high)

    def read(text: str) -> object:
        return None if text.lower() == "off" else number.read(text)

    return Kind(number.name, f"{number.takes}, or off", read)


def decimal(low: float, high: float) -> Kind:
    """A number from `low` to `high`, with up to three decimals."""

    return Kind("number", f"{low} to {high}", _within(readers.read_decimal, low, high))


def one_of(choices: type[StrEnum]) -> Kind:
    """One word of a closed list."""
    return Kind("word", " or ".join(choices), lambda text: choices(text.lower()))


def flag() -> Kind:
    """Yes or no."""
    return Kind("flag", "true or false", readers.read_flag)


def word() -> Kind:
    """A text without blanks, compared as it stands."""
    return Kind("text", "printable ASCII without blanks", readers.read_word)


def text_file() -> Kind:
    """The path of a file that is there."""
    return Kind("path", "a file that can be read", readers.read_path)


def base_url() -> Kind:
    """The address that links start with."""
    takes = f"https (http for a loopback host), ending in {BASE_PATH}, without query"
    return Kind("URL", takes, readers.read_base_url)


def outward_url() -> Kind:
    """An address of the identity provider."""
    takes = "https (http for a loopback host), without user name and fragment"
    return Kind("URL", takes, readers.read_outward_url)


def redis_url() -> Kind:
    """Where Redis is."""
    return Kind(
        "URL",
        "redis://, rediss://, unix:// or redis+sentinel://h:1,h:2/master",
        readers.read_redis_url,
    )


def seal_keys() -> Kind:
    """Keys that seal what is kept in Redis."""
    takes = "one or more Fernet keys, separated by a blank or a comma"
    return Kind("keys", takes, readers.read_seal_keys)


def scope_table() -> Kind:
    """Which technical scopes a functional one stands for."""
    return Kind("table", "A=B C D; E=F", readers.read_scope_table)


def audit_target() -> Kind:
    """Where audit events go."""
    takes = f"{AUDIT_OFF}, {AUDIT_STDOUT} or the path of a file that can be written"
    return Kind("path", takes, readers.read_audit_target)


def digest_key() -> Kind:
    """A key of digests."""
    takes = "32 to 64 characters of printable ASCII without blanks"
    return Kind("key", takes, readers.read_digest_key)


def networks() -> Kind:
    """Addresses and networks."""
    takes = "addresses or CIDR networks, separated by a blank or a comma"
    return Kind("list", takes, readers.read_networks)


def listen() -> Kind:
    """Where the service listens."""
    return Kind("address", "host:port", readers.read_listen)


def _within(
    read: Callable[[str], float], low: float, high: float
) -> Callable[[str], float]:
    def checked(text: str) -> float:
        if not low <= (value := read(text)) <= high:
            raise ValueError
        return value

    return checked


@dataclass(frozen=True, slots=True)
class Setting:
    """One environment variable and the field of `Settings` that it becomes.

    Without a default it is absent unless given; `required` makes that a fault.
    """

    field: str
    kind: Kind
    sentence: str
    default: str | None = None
    required: bool = False
    secret: bool = False

    @property
    def name(self) -> str:
        """The name of the variable."""
        return PREFIX + self.field.upper()
