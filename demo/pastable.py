"""What the demo prints when it is up: its addresses, and lines to paste into a shell."""

import os
import shlex
import sys
from pathlib import Path

from demo.issuer import AUDIENCE, DEFAULT_CLIENT, GRANT_TYPE
from demo.state import DemoDirectory

_TEXT = """\
The service is up.

  base URL      {base_url}
  token server  {issuer}
  logs          {logs}

Paste these lines into another terminal, in this directory and in this order.

# a token (or, without the token server: TOKEN=$({encounters} token))
TOKEN=$(curl -sS {issuer}/oauth/token -d grant_type={grant_type} \
-d client_id={client} --data-urlencode client_secret@{secret} -d audience={audience} \
| {python} -c 'import json, sys; print(json.load(sys.stdin)["access_token"])')

# a search: stays that began in 2024 or later, the newest first
PAGE=$(curl -sS -H "Authorization: Bearer $TOKEN" -d date=ge2024-01-01 -d _count=5 \
{base_url}/Encounter/_search); echo "$PAGE"

# the next page
curl -sS -H "Authorization: Bearer $TOKEN" "$(echo "$PAGE" \
| {python} -c '{next_link}')"; echo

# one stay of that page
curl -sS -H "Authorization: Bearer $TOKEN" "$(echo "$PAGE" \
| {python} -c '{first_url}')"; echo

Ctrl-C stops all of it."""

_NEXT_LINK = (
    'import json, sys; print(*(link["url"] for link in json.load(sys.stdin)["link"] '
    'if link["relation"] == "next"))'
)
_FIRST_URL = 'import json, sys; print(json.load(sys.stdin)["entry"][0]["fullUrl"])'


def pastable(base_url: str, issuer: str, directory: DemoDirectory) -> str:
    """Return the text; its lines need bash, curl and the environment we run in."""
    directory.client_secret()
    scripts = Path(sys.executable).parent
    return _TEXT.format(
        base_url=base_url,
        issuer=issuer,
        logs=_near(directory.root) + "/*.log",
        grant_type=GRANT_TYPE,
        client=DEFAULT_CLIENT,
        secret=_near(directory.client_secret_file),
        audience=AUDIENCE,
        encounters=_near(scripts / "encounters"),
        python=_near(Path(sys.executable)),
        next_link=_NEXT_LINK,
        first_url=_FIRST_URL,
    )


def _near(path: Path) -> str:
    """Return a path for a shell, from here where that is no detour."""
    relative = os.path.relpath(path)
    shown = str(path.absolute()) if relative.startswith(os.pardir) else relative
    return shlex.quote(shown)
