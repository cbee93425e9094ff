"""The plain manifests, rendered from the chart; files that follow from others of the project.

The version of setup.cfg, where charts need it; the names of settings in the schema of values; the
nginx of one machine and that beside a pod, which are that of compose with other addresses.

    .venv/bin/python deploy/kubernetes/generate.py [--check]

`make manifests` builds helm and runs this. With `--check` nothing is written: exit status 1 where
a file differs from what would be. Exit status 2: there is no helm.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path

from app.config import SETTINGS

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "kubernetes"
CHART = ROOT / "deploy" / "chart"

EXPLORER = "explorer.example.org"
"""The host name of the explorer in the manifests, which are examples."""

HEAD = "# Rendered from ../chart by `make manifests`: change the chart.\n"

_OF_THE_CHART = frozenset(
    {
        *("mapping", "trusted_proxies", "unverified_tls", "bind", "operations_bind"),
        *("explorer_bind", "explorer_url", "explorer_client_id"),
    }
)
"""Settings that follow from other values, or from the image."""

_VERSIONS = (
    (CHART / "Chart.yaml", r"(?<=^version: ).*$"),
    (CHART / "Chart.yaml", r"(?<=^appVersion: ).*$"),
    (FOLDER / "kustomization.yaml", r'(?<=newTag: ")[^"]*'),
)
"""Files that hold the version of the product, and where."""

_SOURCE = re.compile(r"^---\n# Source: encounters/templates/(\S+)\n", re.MULTILINE)


def version() -> str:
    """Return the version of the product."""
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg", "utf-8")
    return setup["metadata"]["version"]


PROXY = ROOT / "deploy" / "compose" / "nginx.conf"
_INSTANCES = re.compile(
    r"    # On one machine, rather.*?(?=    keepalive 32;)", re.DOTALL
)
_TLS = re.compile(r"    ssl_certificate .*?(?=    # Mutual TLS)", re.DOTALL)
_MUTUAL = re.compile(r"    # Mutual TLS.*?\n(?=\n)", re.DOTALL)

_ONE_MACHINE = """\
    # Or a socket, with the user of nginx in the group of the service:
    # server unix:/run/encounters/encounters.sock;
    server 127.0.0.1:8000;
"""

_POD = """\
# Beside the service in its pod, where its controller terminates TLS, or with the certificates
# itself (proxy.tls). Any user id: it writes to /tmp only.
worker_processes 1;
pid /tmp/nginx.pid;
error_log /dev/stderr notice;
events { worker_connections 4096; }
http {
client_body_temp_path /tmp/body;
proxy_temp_path /tmp/proxy;
fastcgi_temp_path /tmp/fastcgi;
uwsgi_temp_path /tmp/uwsgi;
scgi_temp_path /tmp/scgi;
{{- if not .Values.proxy.tls }}
# The controller in front says who its client is, and that it used TLS.
geo $realip_remote_addr $is_controller {
    default 0;
    {{- range .Values.trustedProxies }}
    {{ . }} 1;
    {{- end }}
}
map $is_controller:$http_x_forwarded_proto $client_scheme { 1:https https; default http; }
{{- range .Values.trustedProxies }}
set_real_ip_from {{ . }};
{{- end }}
real_ip_header X-Forwarded-For;
real_ip_recursive on;
{{- end }}
"""


def _swap(text: str, *changes: tuple[str | re.Pattern[str], str]) -> str:
    """Replace texts, each of which has to be there once."""
    for before, after in changes:
        pattern = re.escape(before) if isinstance(before, str) else before
        text, count = re.subn(pattern, lambda _, new=after: new, text)
        if count != 1:
            raise ValueError(f"{count} times in {PROXY.name}: {before}")
    return text


def proxies() -> Iterator[tuple[Path, str]]:
    """Yield the nginx of one machine, and that of a pod as a template of helm."""
    head = "# Written from ../compose/nginx.conf by `make manifests`.\n"
    text = PROXY.read_text("utf-8")
    yield (
        ROOT / "deploy" / "systemd" / "nginx.conf",
        head + _swap(text, (_INSTANCES, _ONE_MACHINE)),
    )
    mutual = _MUTUAL.findall(text)[0]
    tls = "{{- if .Values.proxy.tls }}\n" + _TLS.findall(text)[0]
    pod = _swap(
        text,
        (_INSTANCES, "    server 127.0.0.1:8000;\n"),
        (_TLS, tls),
        (
            _MUTUAL,
            "    {{- if .Values.proxy.clientCertificates }}\n"
            + mutual.replace("/etc/nginx/tls/clients.pem", "/etc/nginx/clients/ca.crt")
            + "    {{- end }}\n{{- end }}\n",
        ),
        (
            "    listen 443 ssl;\n    server_name encounters.example.org;\n",
            "    listen {{ if .Values.proxy.tls }}8443 ssl{{ else }}8080{{ end }};\n"
            "    server_name {{ .Values.host }};\n",
        ),
        ("access_log /var/log/nginx/access.log", "access_log /dev/stdout"),
        ("/etc/nginx/tls/encounters.pem", "/etc/nginx/tls/tls.crt"),
        ("/etc/nginx/tls/encounters.key", "/etc/nginx/tls/tls.key"),
        (
            "X-Forwarded-Proto $scheme;",
            "X-Forwarded-Proto ${{ if .Values.proxy.tls }}scheme{{ else }}client_scheme"
            "{{ end }};",
        ),
    )
    yield CHART / "files" / "nginx.conf", f"{_POD}{pod}}}\n"


def schema() -> tuple[Path, str]:
    """Return the schema of values, with the names of settings that a deployment may choose."""
    file = CHART / "values.schema.json"
    content = json.loads(file.read_text("utf-8"))
    names = [s.name for s in SETTINGS if not s.secret and s.field not in _OF_THE_CHART]
    content["properties"]["settings"]["propertyNames"] = {"enum": names}
    return file, json.dumps(content, indent=2) + "\n"


def helm() -> str | None:
    """Return the helm of this machine: `HELM`, that of `.ci/helm`, or that of the path."""
    built = ROOT / "build" / "bin" / "helm"
    named = os.environ.get("HELM")
    return named or (str(built) if built.exists() else shutil.which("helm"))


def versioned() -> dict[Path, str]:
    """Return the files that hold the version, with that of setup.cfg."""
    texts: dict[Path, str] = {}
    for file, place in _VERSIONS:
        text = texts.get(file) or file.read_text("utf-8")
        texts[file] = re.sub(place, version(), text, flags=re.MULTILINE)
    return texts


def manifests(program: str) -> Iterator[tuple[Path, str]]:
    """Yield each plain manifest; settings, mapping and image are for kustomize to fill in."""
    for name, text in _rendered(program):
        yield FOLDER / name, text
    # Of the explorer its Ingress alone: the rest are patches of the others.
    ingress = dict(_rendered(program, f"explorer.host={EXPLORER}"))["explorer.yaml"]
    yield FOLDER / "explorer" / "ingress.yaml", ingress


def _rendered(program: str, *values: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each file of the chart."""
    values = (
        *("image.repository=encounters", f"image.tag={version()}", "configMaps=false"),
        *values,
    )
    rendered = subprocess.run(  # noqa: S603 - helm, with arguments of ours
        [
            *(program, "template", "encounters", str(CHART)),
            *("--namespace", "encounters"),
            *("--values", str(CHART / "example.yaml"), "--set", ",".join(values)),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    _, *parts = _SOURCE.split(rendered.stdout)
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        yield name, HEAD + text


def main(arguments: list[str]) -> int:
    """Write the files, or compare them; return the exit status."""
    program = helm()
    if program is None:
        print("helm is not installed, and .ci/helm has not built it.", file=sys.stderr)
        return 2
    texts = {**versioned(), **dict(proxies()), **dict([schema()])}
    for file, text in texts.items():
        # helm reads some of them.
        if "--check" not in arguments and not file.exists():
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, "utf-8")
    texts |= dict(manifests(program))
    differing = [
        file
        for file, text in texts.items()
        if not file.exists() or file.read_text("utf-8") != text
    ]
    for file in differing:
        print(file.relative_to(ROOT))
        if "--check" not in arguments:
            file.write_text(texts[file], "utf-8")
    return 1 if differing and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
