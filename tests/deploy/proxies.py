"""The nginx of deploy/compose/nginx.conf on this machine: its files and addresses moved."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from tests.live import HOST, ROOT

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")

FRONT = "172.30.0"
"""The network in which the compose file puts the instances, from .11 on."""

SHIPPED = ROOT / "deploy" / "compose" / "nginx.conf"


def nginx_conf(directory: Path, port: int, upstreams: Sequence[int]) -> str:
    """Return the shipped configuration, on loopback ports and with files in a directory."""
    text = SHIPPED.read_text("utf-8")
    text = text.replace("/etc/nginx/tls", str(directory))
    text = text.replace("/var/log/nginx", str(directory))
    text = text.replace("listen 443 ssl", f"listen {HOST}:{port} ssl")
    for number, upstream in enumerate(upstreams, 1):
        text = text.replace(f"{FRONT}.{10 + number}:8000", f"{HOST}:{upstream}")
    # What the package of nginx says around such a file.
    temporary = "".join(
        f"{name}_temp_path {directory}/{name};\n"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    around = (
        f"daemon off;\npid {directory}/pid;\nerror_log {directory}/error.log crit;\n"
    )
    return f"{around}events {{}}\nhttp {{\n{temporary}{text}}}\n"
