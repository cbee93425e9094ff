"""Opaque tokens: the provider is asked what each one is worth (RFC 7662).

A provider that hangs holds some of the threads, never all: so many questions at once, and
while it does not answer nobody waits for one's turn.
"""

import logging
from collections.abc import Callable
from threading import BoundedSemaphore

from authlib.integrations.requests_client.oauth2_session import OAuth2ClientAuth

from app.errors import UnavailableError
from app.identity import IdentityError, Provider
from app.tokens import BadTokenError, ClaimsReader, Verified

CACHE_SECONDS = 30
"""How long a token that the provider has withdrawn may still be taken here."""


TURN_SECONDS = 1.0
"""How long a question waits for its turn, where the last one was answered."""

_log = logging.getLogger(__name__)


class IntrospectedTokens:
    """Asks the provider about tokens, up to `at_once` of them. Safe to share between threads."""

    def __init__(
        self,
        provider: Provider,
        claims: ClaimsReader,
        *,
        client_id: str,
        client_secret: str,
        at_once: int,
        clock: Callable[[], float],
    ) -> None:
        self._provider = provider
        self._claims = claims
        self._auth = OAuth2ClientAuth(client_id, client_secret, "client_secret_basic")
        self._clock = clock
        self._turns = BoundedSemaphore(at_once)
        self._away = False

    def verify(self, token: str) -> Verified:
        """Return the client of a token that the provider calls active.

        Raises BadTokenError, UnavailableError when the provider could not be asked.
        """
        answer = self._asked({"token": token, "token_type_hint": "access_token"})
        if answer.get("active") is not True:
            raise BadTokenError("not active")
        # Some providers write null for what they do not say.
        said = {name: value for name, value in answer.items() if value is not None}
        client = self._claims.read(said, required=False)
        soon = self._clock() + CACHE_SECONDS
        expires = said.get("exp")
        until = min(soon, expires) if isinstance(expires, int | float) else soon
        return Verified(client, until)

    def _asked(self, form: dict[str, str]) -> dict[str, object]:
        if not self._turns.acquire(timeout=0 if self._away else TURN_SECONDS):
            raise _unavailable()
        try:
            answer = self._provider.post(form, self._auth)
        except IdentityError as error:
            self._away = True
            data = {"reason": str(error)}
            _log.warning("token not introspected", extra={"data": data})
            raise _unavailable() from error
        else:
            self._away = False
            return answer
        finally:
            self._turns.release()


def _unavailable() -> UnavailableError:
    return UnavailableError(
        "The token cannot be checked at the moment. Try again later."
    )
