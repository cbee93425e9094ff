"""The certificate that somebody shows: who vouches for it, and how long it is good."""

import socket
import ssl
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

from adapters.timed import authorities
from app.tools.doctor.rounds import Seen, error, fine, note, warning

SOON_DAYS = 21
"""From how many days before its end a certificate is warned of."""

SECONDS = 3.0

_HTTPS = 443
_EXPIRED = 10
_DAY = 86400


def certificate(url: str, known: str = "", *, for_us: bool = True) -> Iterator[Seen]:
    """Yield what there is to say of the certificate behind an https address.

    Without a file of authorities those of all our calls count. One that is not `for_us` may
    be vouched for by somebody whom only others know.
    """
    parts = urlsplit(url)
    if parts.scheme != "https":
        return
    try:
        context = ssl.create_default_context(cafile=known or authorities())
    except OSError:
        yield error(
            "its authorities cannot be read",
            "SSL_CERT_FILE, or ssl_ca_certs of Redis: a file of certificates (PEM)",
        )
        return
    address = (parts.hostname or "", parts.port or _HTTPS)
    try:
        with (
            socket.create_connection(address, SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=parts.hostname) as secure,
        ):
            shown = secure.getpeercert() or {}
    except ssl.SSLCertVerificationError as refused:
        yield _refused(refused, for_us=for_us)
    except OSError as away:
        yield note(f"no certificate was shown ({type(away).__name__})")
    else:
        ends = ssl.cert_time_to_seconds(str(shown["notAfter"]))
        yield _lasting(int((ends - time.time()) // _DAY))


def _refused(refused: ssl.SSLCertVerificationError, *, for_us: bool) -> Seen:
    # The library's own words may hold the name of the host.
    if refused.verify_code == _EXPIRED:
        return error("its certificate has expired", "renew it there")
    if "ostname" in refused.verify_message or "IP address" in refused.verify_message:
        text = "its certificate is another host's"
        return error(text, "let the setting and the certificate have the same name")
    text = "nobody whom we know vouches for its certificate"
    if not for_us:
        return note(text, "if it is of your own authority: clients must know that one")
    return error(text, "send the whole chain there; authorities: SSL_CERT_FILE")


def _lasting(days: int) -> Seen:
    if days < SOON_DAYS:
        return warning(f"its certificate ends in {days} days", "renew it there")
    return fine(f"its certificate is good for {days} days")
