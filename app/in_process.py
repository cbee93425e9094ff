"""What a program in the same process adds to the environ of its calls to the service.

The explorer calls the service as its clients do, through WSGI and with an access token, and
says for whom. No client can send these keys: a server names every header HTTP_….
"""

PERSON = "encounters.person"
"""Who looks: the subject of their login, "" for nobody but the client of the token.

Pages belong to them, and the audit trail names them behind the client.
"""

REASON = "encounters.reason"
"""Why they look, in their words, for the audit event; None where nobody asked."""
