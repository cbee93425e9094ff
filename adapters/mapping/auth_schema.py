"""The shapes of the ways in which an HTTP source is shown who asks."""

from adapters.mapping.secrets import Secret
from adapters.mapping.shapes import Entries, Part, Shape, Text


class BasicShape(Shape):
    """A user and a password."""

    user = Secret(required=True)
    password = Secret(required=True)


class OAuth2Shape(Shape):
    """Client credentials."""

    token_url = Secret(required=True)
    client_id = Secret(required=True)
    client_secret = Secret(required=True)
    scope = Text()
    audience = Text()


class SessionShape(Shape):
    """A login of the source's own."""

    path = Text(required=True)
    body = Entries(Secret())
    form = Entries(Secret())
    token = Text(required=True)
    header = Text(required=True)
    format = Text()


class AuthShape(Shape):
    """One way to show who asks."""

    one_of = ("basic", "oauth2", "session")
    basic = Part(BasicShape)
    oauth2 = Part(OAuth2Shape)
    session = Part(SessionShape)
