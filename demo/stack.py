"""The whole service on one machine: an invented hospital, Redis, tokens, and the service.

`run` is what `make run` and `encounters demo` do: it creates the hospital, starts every
part, prints lines to paste into a shell, and stops everything at the end.
"""

import fcntl
import os
import shlex
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from zoneinfo import ZoneInfo

from demo.issuer import AUDIENCE, DEFAULT_CLIENT, GRANT_TYPE
from demo.processes import (
    SEED,
    Addresses,
    Family,
    StopRequestedError,
    ignore_stop_signals,
    redis_server,
    start_issuer,
    start_pas,
    start_redis,
    start_service,
    stop_signals,
)
from demo.state import DEFAULT_ROOT, HOST, DemoDirectory, DemoError, Deployment

HOSPITAL_ZONE = "Europe/Paris"
"""The zone of the demo's mapping."""

MOST_STAYS_OVER_HTTP = 100_000
"""The hospital's API scans all of them for each request."""


def run(deployment: Deployment, port: int, stays: int, root: Path) -> int:
    """Run the demo until it is stopped or a part of it ends; return the exit status.

    0: it was stopped. 1: it could not start or go on, and stderr has the reason.
    """
    with stop_signals():
        try:
            _run(deployment, Addresses(port), stays, root)
        except StopRequestedError:
            # The terminal may be what has gone away.
            with suppress(OSError):
                print("Stopped. The data are kept; the next start is quick.")
            return 0
        except DemoError as error:
            print(error, file=sys.stderr)
            return 1
    return 0


def _run(deployment: Deployment, addresses: Addresses, stays: int, root: Path) -> None:
    server, directory = redis_server(), deployment.directory(root)
    if deployment.over_http and stays > MOST_STAYS_OVER_HTTP:
        raise DemoError(
            f"A hospital behind an API has {MOST_STAYS_OVER_HTTP:,} stays at most here."
        )
    directory.prepare()
    with ExitStack() as stack:
        stack.enter_context(_locked(directory))
        _check_ports(deployment, addresses)
        variables: Mapping[str, str] = {}
        if not (deployment.over_http or deployment.real_mapping):
            variables = _database(directory, stays)
            if not deployment.group:
                _enliven(variables["PAS_URL"], stays)
        # A short path: that of a socket has about a hundred bytes at most.
        folder = stack.enter_context(TemporaryDirectory(prefix="encounters-"))
        redis = Path(folder, "redis.sock")
        family = stack.enter_context(Family())
        stack.callback(ignore_stop_signals)
        directory.remember_issuer(addresses.issuer)
        start_redis(family, directory, server, redis)
        start_issuer(family, directory, addresses)
        if deployment.over_http:
            variables = start_pas(family, directory, addresses, stays)
        variables = {"ENCOUNTERS_REDIS_URL": f"unix://{redis}", **variables}
        start_service(family, directory, addresses, deployment, variables)
        family.wait_until_ready()
        print(lines_to_paste(deployment, addresses, root), flush=True)
        family.watch()


@contextmanager
def _locked(directory: DemoDirectory) -> Iterator[None]:
    with directory.lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DemoError(
                f"Another demo is running in {directory.root}: stop it first, or give "
                "this one a directory of its own with --directory."
            ) from None
        yield


def _check_ports(deployment: Deployment, addresses: Addresses) -> None:
    offsets = (0, 1, 2, 3) if deployment.over_http else (0, 1, 3)
    for port in (addresses.port + offset for offset in offsets):
        with socket.socket() as probe:
            # As the servers do it: a port that was just left is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError as error:
                raise DemoError(
                    f"Port {port} cannot be used ({error.strerror}): choose others, "
                    f"four in a row, for example '{deployment.command} PORT=9000'."
                ) from None


def _database(directory: DemoDirectory, stays: int) -> Mapping[str, str]:
    """Return the address of the hospital's database, which the first start creates."""
    path = directory.hospital(stays)
    if not path.exists():
        # Not needed by later starts.
        from demo.hospital import fill

        print(f"Making a hospital of {stays:,} stays …", flush=True)
        with TemporaryDirectory(prefix="half-", dir=directory.root) as half:
            fill(f"sqlite:///{half}/{path.name}", stays=stays, seed=SEED)
            Path(half, path.name).replace(path)
    return {"PAS_URL": f"sqlite:///{path.resolve()}"}


def _enliven(url: str, stays: int) -> None:
    """Let some of the stays be around now, at every start."""
    from demo.living import enliven

    enliven(url, stays, datetime.now(ZoneInfo(HOSPITAL_ZONE)))


_NEXT_LINK = (
    'import json, sys; print(*(link["url"] for link in json.load(sys.stdin)["link"] '
    'if link["relation"] == "next"))'
)
_FIRST_URL = 'import json, sys; print(json.load(sys.stdin)["entry"][0]["fullUrl"])'


def lines_to_paste(deployment: Deployment, addresses: Addresses, root: Path) -> str:
    """Return what the demo prints; its lines need bash, curl and this Python.

    A hospital that is not invented has no lines: its contents are unknown.
    """
    directory, group = deployment.directory(root), deployment.group
    as_group = f" as group {group.upper()} is offered it" if group else ""
    pas = f"  hospital      {addresses.pas}\n" if deployment.over_http else ""
    addresses_text = f"""\
The service is up{as_group}.

  explorer      {addresses.explorer}   open it in a browser and log in with any name
  base URL      {addresses.base_url}
  token server  {addresses.issuer}
{pas}  logs          {_near(directory.root)}/*.log
  read on       docs/call/index.md to call it, docs/bring/index.md to connect your hospital

"""
    end = "Ctrl-C stops all of it."
    if deployment.real_mapping:
        return addresses_text + end
    python, base_url = _near(Path(sys.executable)), addresses.base_url
    bearer = 'curl -sS -H "Authorization: Bearer $TOKEN"'
    if group:
        only = "; there is one page only"
        after = f"""\
# what this group is not offered: refused, and the answer says what it is offered
{bearer} -d class=EMER {base_url}/Encounter/_search; echo"""
    else:
        only = ""
        after = f"""\
# the next page
{bearer} "$(echo "$PAGE" | {python} -c '{_NEXT_LINK}')"; echo"""
    return f"""\
{addresses_text}\
Paste these lines into another terminal, in this directory and in this order.

# a token (or, without the token server: TOKEN=$({_token_command(group, root)}))
TOKEN=$(curl -sS {addresses.issuer}/oauth/token -d grant_type={GRANT_TYPE} \
-d client_id={DEFAULT_CLIENT} --data-urlencode \
client_secret@{_near(directory.client_secret())} -d audience={AUDIENCE} \
| {python} -c 'import json, sys; print(json.load(sys.stdin)["access_token"])')

# a search: stays that began in 2024 or later, the newest first{only}
PAGE=$({bearer} -d date=ge2024-01-01 -d _count=5 {base_url}/Encounter/_search); \
echo "$PAGE"

{after}

# one stay of that page
{bearer} "$(echo "$PAGE" | {python} -c '{_FIRST_URL}')"; echo

{end}"""


def _token_command(group: str, root: Path) -> str:
    command = [_near(Path(sys.executable).parent / "encounters"), "token"]
    command += ["--group", group] if group else []
    command += [] if root == DEFAULT_ROOT else ["--directory", _near(root)]
    return " ".join(command)


def _near(path: Path) -> str:
    """Return a path for a shell, relative where that is no detour."""
    relative = os.path.relpath(path)
    shown = str(path.absolute()) if relative.startswith(os.pardir) else relative
    return shlex.quote(shown)
