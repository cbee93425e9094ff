"""Addresses of databases, and what is wrong with one before anybody is asked."""

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url

from adapters.contract import SourceDataError

_PORTS = 2**16


class AddressError(SourceDataError):
    """What should be the address of a database cannot be read as one."""


def address(url: str) -> URL:
    """Return an address, read; raises AddressError."""
    try:
        read = make_url(url)
    except (ValueError, sa.exc.ArgumentError):
        # What these say may be a part of a password that holds a sign of addresses.
        raise AddressError(
            "the address cannot be read: signs like @ : / in a password are written"
            " as %40 %3A %2F"
        ) from None
    if read.port is not None and not 0 < read.port < _PORTS:
        raise AddressError(f"the address has a port that is none: 1 to {_PORTS - 1}")
    return read


def odd_option(known: str = "") -> AddressError:
    """Return the error of an address with an option, or a value of one, that nobody takes.

    The option is named where the driver has one of that name: what else stands there may be
    a part of a password.
    """
    if known:
        return AddressError(
            f"the address has a value of {known} that the driver does not take"
        )
    return AddressError("the address has an option that the driver does not take")


def is_of_the_driver(error: Exception) -> bool:
    """Whether a driver did not even ask: psycopg refuses options without a state."""
    told = getattr(error, "orig", error)
    is_refusal = type(told).__name__ == "ProgrammingError"
    return is_refusal and getattr(told, "sqlstate", "") is None
