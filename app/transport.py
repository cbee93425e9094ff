"""HTTPS only (decision 24).

A request counts as HTTPS when it came so, or when a trusted proxy says that it did.
One switch lets plain HTTP in from this machine itself, for a demo.
"""

from ipaddress import ip_address

from flask import Flask, request

from app.errors import SecurityError
from app.settings import PlainHttp, Settings


def register_transport(app: Flask, settings: Settings) -> None:
    """Refuse what came over plain HTTP, before anything else is looked at."""

    @app.before_request
    def refuse_plain_http() -> None:
        if not _is_secure(settings):
            raise SecurityError("This service is reached over HTTPS only.")


def _is_secure(settings: Settings) -> bool:
    if request.scheme == "https":
        return True
    try:
        peer = ip_address(request.remote_addr or "")
    except ValueError:
        return False
    # A socket for both protocols writes IPv4 peers as ::ffff:a.b.c.d.
    peer = getattr(peer, "ipv4_mapped", None) or peer
    if any(peer in network for network in settings.trusted_proxies):
        # The proxy next to us writes last.
        told = request.headers.get("X-Forwarded-Proto", "")
        if told.rpartition(",")[2].strip().lower() == "https":
            return True
    return settings.plain_http is PlainHttp.LOOPBACK and peer.is_loopback
