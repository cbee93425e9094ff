"""The identity provider: its key set, its introspection, its clock, its certificates."""

import secrets
import time
from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime
from functools import partial

from authlib.integrations.requests_client.oauth2_session import OAuth2ClientAuth

from app.identity import IdentityError, Provider
from app.keys import usable_keys
from app.settings import Settings
from app.tools.doctor.certificates import certificate
from app.tools.doctor.clocks import compared
from app.tools.doctor.rounds import Check, Seen, error, fine, warning

_REFUSED = ("status 401", "status 403")


def identity_checks(
    settings: Settings, clock: Callable[[], float] = time.time
) -> Iterator[Check]:
    """Yield a check for each address of the provider."""
    if settings.key_set_url:
        yield Check("key set", partial(_key_set, settings, settings.key_set_url, clock))
    if settings.introspection_url:
        url = settings.introspection_url
        yield Check("introspection", partial(_introspection, settings, url))


def _key_set(
    settings: Settings, url: str, clock: Callable[[], float]
) -> Iterator[Seen]:
    provider = Provider(url, settings.identity_timeout_seconds)
    began = time.monotonic()
    try:
        told = provider.told()
        keys = usable_keys(told.object)
    except IdentityError as refused:
        text = f"cannot be had ({refused}): no token can be checked (503)"
        yield error(text, "is ENCOUNTERS_KEY_SET_URL right, and let through?")
    else:
        yield from _pace(time.monotonic() - began, settings.identity_timeout_seconds)
        yield fine(f"{len(keys)} key{'s' * (len(keys) > 1)} that can be used")
        if told.date:
            # It counts whole seconds.
            off = parsedate_to_datetime(told.date).timestamp() + 0.5 - clock()
            yield compared(off, settings.leeway_seconds)
    finally:
        provider.close()
    yield from certificate(url)


def _introspection(settings: Settings, url: str) -> Iterator[Seen]:
    provider = Provider(url, settings.identity_timeout_seconds)
    name, secret = (
        settings.introspection_client_id,
        settings.introspection_client_secret,
    )
    auth = OAuth2ClientAuth(name or "", secret or "", "client_secret_basic")
    form = {"token": secrets.token_urlsafe(), "token_type_hint": "access_token"}
    began = time.monotonic()
    try:
        answer = provider.post(form, auth)
    except IdentityError as refused:
        if str(refused) in _REFUSED:
            yield error(
                f"refuses us ({refused})",
                "see ENCOUNTERS_INTROSPECTION_CLIENT_ID and …_SECRET",
            )
        else:
            yield error(
                f"cannot be asked ({refused}): opaque tokens are 503",
                "is ENCOUNTERS_INTROSPECTION_URL right, and let through?",
            )
    else:
        yield from _pace(time.monotonic() - began, settings.identity_timeout_seconds)
        if answer.get("active") is False:
            yield fine("knows us, and a made-up token for what it is")
        else:
            yield error("takes a made-up token for a good one", "let nobody in: ask it")
    finally:
        provider.close()
    yield from certificate(url)


def _pace(took: float, longest: float) -> Iterator[Seen]:
    if took > longest / 2:
        text = f"answers in {took:.1f} s, and has {longest:g}"
        yield warning(text, "raise ENCOUNTERS_IDENTITY_TIMEOUT_SECONDS")
    else:
        yield fine(f"answers in {1000 * took:.0f} ms")
