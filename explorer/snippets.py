"""A search as programs would send it: curl, Python, JavaScript, and an `.http` file.

The token is a placeholder everywhere: no snippet has a secret.
"""

import json
import shlex
from collections.abc import Mapping
from urllib.parse import quote, urlencode

from explorer.sessions import Pairs


def snippets(base_url: str, kind: str, form: Pairs) -> Mapping[str, str]:
    """Return a search in each language."""
    url = f"{base_url}/{kind}/_search"
    return {
        "curl": _curl(url, form),
        "Python": _python(url, form),
        "JavaScript": _javascript(url, form),
        ".http": _http(url, form),
    }


def _http(url: str, form: Pairs) -> str:
    """Return the request as editors and httpyac read it; the token is a variable."""
    return f"""\
POST {url}
Authorization: Bearer {{{{token}}}}
Content-Type: application/x-www-form-urlencoded

{urlencode(form, quote_via=quote, safe="")}
"""


def _curl(url: str, form: Pairs) -> str:
    lines = ['curl -sS -H "Authorization: Bearer $TOKEN"']
    lines += [
        f"  --data-urlencode {shlex.quote(f'{name}={text}')}" for name, text in form
    ]
    # Without criteria, too, it is a POST.
    lines += [f"  -X POST {shlex.quote(url)}"]
    return " \\\n".join(lines) + "\n"


def _python(url: str, form: Pairs) -> str:
    pairs = "".join(f"    ({name!r}, {text!r}),\n" for name, text in form)
    return f"""\
import os
import requests

answer = requests.post(
    {url!r},
    data=[
{pairs.replace("    (", "        (")}    ],
    headers={{"Authorization": f"Bearer {{os.environ['TOKEN']}}"}},
    timeout=60,
)
answer.raise_for_status()
print(answer.json()["total"])
"""


def _javascript(url: str, form: Pairs) -> str:
    pairs = "".join(
        f"    {json.dumps(list(pair), ensure_ascii=False)},\n" for pair in form
    )
    return f"""\
const answer = await fetch({json.dumps(url)}, {{
  method: "POST",
  headers: {{ Authorization: `Bearer ${{process.env.TOKEN}}` }},
  body: new URLSearchParams([
{pairs}  ]),
  signal: AbortSignal.timeout(60_000),
}});
if (!answer.ok) throw new Error(`status ${{answer.status}}: ${{await answer.text()}}`);
console.log((await answer.json()).total);
"""
