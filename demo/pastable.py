"""What the demo prints when it is up: its addresses, and lines to paste into a shell."""

import os
import shlex
import sys
from pathlib import Path

from demo.deployments import Deployment
from demo.issuer import AUDIENCE, DEFAULT_CLIENT, GRANT_TYPE
from demo.parts import Addresses
from demo.state import DEFAULT_ROOT

_TEXT = """\
The service is up{as_group}.

  base URL      {base_url}
  token server  {issuer}
{pas}\
  logs          {logs}

Paste these lines into another terminal, in this directory and in this order.

# a token (or, without the token server: TOKEN=$({token_command}))
TOKEN=$(curl -sS {issuer}/oauth/token -d grant_type={grant_type} \
-d client_id={client} --data-urlencode client_secret@{secret} -d audience={audience} \
| {python} -c 'import json, sys; print(json.load(sys.stdin)["access_token"])')

# a search: stays that began in 2024 or later, the newest first{only}
PAGE=$(curl -sS -H "Authorization: Bearer $TOKEN" -d date=ge2024-01-01 -d _count=5 \
{base_url}/Encounter/_search); echo "$PAGE"

{after_the_search}

# one stay of that page
curl -sS -H "Authorization: Bearer $TOKEN" "$(echo "$PAGE" \
| {python} -c '{first_url}')"; echo

Ctrl-C stops all of it."""

_NEXT_PAGE = """\
# the next page
curl -sS -H "Authorization: Bearer $TOKEN" "$(echo "$PAGE" \
| {python} -c '{next_link}')"; echo"""

_REFUSED = """\
# what this group is not offered: refused, and the answer says what it is offered
curl -sS -H "Authorization: Bearer $TOKEN" -d class=EMER \
{base_url}/Encounter/_search; echo"""

_NEXT_LINK = (
    'import json, sys; print(*(link["url"] for link in json.load(sys.stdin)["link"] '
    'if link["relation"] == "next"))'
)
_FIRST_URL = 'import json, sys; print(json.load(sys.stdin)["entry"][0]["fullUrl"])'


def pastable(deployment: Deployment, addresses: Addresses, root: Path) -> str:
    """Return the text; its lines need bash, curl and the environment we run in."""
    directory, group = deployment.directory(root), deployment.group
    directory.client_secret()
    python = _near(Path(sys.executable))
    after_the_search = (_REFUSED if group else _NEXT_PAGE).format(
        base_url=addresses.base_url, python=python, next_link=_NEXT_LINK
    )
    return _TEXT.format(
        as_group=f" as group {group.upper()} is offered it" if group else "",
        base_url=addresses.base_url,
        issuer=addresses.issuer,
        pas=f"  hospital      {addresses.pas}\n" if deployment.over_http else "",
        logs=_near(directory.root) + "/*.log",
        grant_type=GRANT_TYPE,
        client=DEFAULT_CLIENT,
        secret=_near(directory.client_secret_file),
        audience=AUDIENCE,
        token_command=_token_command(group, root),
        python=python,
        only="; there is one page only" if group else "",
        after_the_search=after_the_search,
        first_url=_FIRST_URL,
    )


def _token_command(group: str, root: Path) -> str:
    command = [_near(Path(sys.executable).parent / "encounters"), "token"]
    command += ["--group", group] if group else []
    command += [] if root == DEFAULT_ROOT else ["--directory", _near(root)]
    return " ".join(command)


def _near(path: Path) -> str:
    """Return a path for a shell, from here where that is no detour."""
    relative = os.path.relpath(path)
    shown = str(path.absolute()) if relative.startswith(os.pardir) else relative
    return shlex.quote(shown)
