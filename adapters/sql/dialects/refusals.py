"""Why a database takes no connection: a sentence for each cause, and how it is recognised.

A dialect has one table: patterns of the code and the message of its driver's errors, each with
the sentence. Messages of servers may be in English, French or German. A sentence quotes nothing
of a message: the address may be in it.
"""

from collections.abc import Mapping

HOST = (
    "the name of its host is unknown: check the host of the address, and that this machine"
    " resolves names"
)
PORT = (
    "nothing listens at its host and port: check both, and that the server runs and listens"
    " on the network"
)
SILENT = (
    "its host does not answer in time: check the host, and the firewalls on the way"
)
SOCKET = (
    "its socket cannot be opened: check the directory in the address, and that the server"
    " runs on this machine"
)
FILE = (
    "its file does not exist or cannot be read: check path, rights and disk (an absolute path"
    " follows sqlite:/// and begins with /)"
)
NO_DATABASE_FILE = "its file is no SQLite database: check the path"
DATABASE = (
    "the server has no such database: check the name after the host in the address"
)
NO_RIGHT = "the account may not use that database: grant it the right to connect to it"
ACCOUNT = "the server has no such account: check the user in the address, or create it"
CREDENTIALS = (
    "the server refuses the account or its password: check both (characters like @ : / in a"
    " password are written as %40 %3A %2F)"
)
PLACE = (
    "the server refuses this account from this machine: allow it there (pg_hba.conf, or the"
    " host of the account)"
)
PLACE_OR_TLS = (
    "the server refuses this account from this machine without TLS: add `sslmode=verify-full`"
    " to the address, or allow the account (pg_hba.conf)"
)
LOCKED = (
    "the account is locked or its password has expired: ask the database administrator"
)
TLS_REQUIRED = "the server requires TLS: add the option for it to the address"
NO_TLS = (
    "the server offers no TLS, which the address requires: enable it on the server, or"
    " correct the address"
)
CERTIFICATE = (
    "the certificate of the server is not trusted, or is for another host: check the"
    " host, and the authority that the address names"
)
FULL = "it has no connection left: raise its limit, or lower source.connections"
STARTING = "it is starting or stopping: try again later"
POOLER = "the pooler cannot reach the database: its log has the reason"
POOLER_OPTIONS = "the pooler refuses an option of the connection"
DRIVER = (
    "the ODBC driver that the address names is not installed: install it, or correct"
    " `driver=` in the address"
)

NETWORK: Mapping[str, str] = {
    "certificate verify failed|match host name|certificate file"
    "|[Hh]ostname mismatch|address mismatch": CERTIFICATE,
    "does not support SSL|doesn't support it|(?i:wrong.version.number)": NO_TLS,
    "translate host name|not known|name resolution|No address associated": HOST,
    "Connection refused": PORT,
    "timed out|timeout expired|No route to host|Network is unreachable": SILENT,
    "No such file or directory|Permission denied": SOCKET,
}
"""What the system and TLS report, through every driver."""
