"""A search as programs would send it: curl, Python, JavaScript, and an `.http` file.

The token is a placeholder everywhere: no snippet has a secret. The explorer shows them.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from urllib.parse import quote

Pairs = Sequence[tuple[str, str]]

FORM = "application/x-www-form-urlencoded"
SIGNED = ("Authorization", "Bearer {{token}}")
"""The header of a request with a token, which is a variable."""


def snippets(base_url: str, kind: str, form: Pairs) -> Mapping[str, str]:
    """Return a search in each language."""
    url = f"{base_url}/{kind}/_search"
    return {
        "curl": _curl(url, form),
        "Python": _python(url, form),
        "JavaScript": _javascript(url, form),
        ".http": http_request("POST", url, [SIGNED], form),
    }


def http_request(method: str, url: str, headers: Pairs, form: Pairs | None) -> str:
    """Return a request as editors and httpyac read it; a variable stays as it is."""
    lines = [f"{method} {url}", *(f"{name}: {text}" for name, text in headers)]
    if form is not None:
        body = "&".join(f"{name}={_quoted(text)}" for name, text in form)
        lines += [f"Content-Type: {FORM}", "", body]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return text if "{{" in text else quote(text, safe="")


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
