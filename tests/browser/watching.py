"""Pages in a real browser, and what no page of ours may do: each is a finding.

Requests to another origin, violations of the Content-Security-Policy, errors of scripts, and what
axe-core calls serious or critical for people who cannot see, point or tell colours apart.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Locator,
    Page,
    Request,
    WebError,
)

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update"),
    "--disable-sync",
    # What a page asks of another host is a finding, and never leaves this machine.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)

WIDE: dict[str, Any] = {"viewport": {"width": 1280, "height": 900}}
NARROW: dict[str, Any] = {"viewport": {"width": 390, "height": 844}}
DARK: dict[str, Any] = {**WIDE, "color_scheme": "dark"}
NO_SCRIPT: dict[str, Any] = {**WIDE, "java_script_enabled": False}
"""Options of a browser's context, for `visiting`."""

_AXE = Path(__file__).parent / "axe" / "axe.min.js"
_TOLD_BY_AXE = frozenset({"serious", "critical"})
_POLICY = "Content Security Policy"
_REPORT_VIOLATIONS = f"""
document.addEventListener("securitypolicyviolation", (event) =>
  console.error("{_POLICY}:", event.effectiveDirective, event.blockedURI, event.sample));
"""


class Kind(StrEnum):
    """What a page did."""

    OTHER_ORIGIN = "request to another origin"
    POLICY = "violation of the Content-Security-Policy"
    SCRIPT = "error of a script"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a page did and may not."""

    kind: Kind
    text: str


@contextmanager
def visiting(
    browser: Browser, *origins: str, **options: Any
) -> Iterator[tuple[Page, list[Finding]]]:
    """Open an empty page in a context of its own; yield it and its findings.

    `origins` are all that it may send requests to: the first is the base of relative addresses.
    The findings are complete once the block has ended.
    """
    findings: list[Finding] = []
    context = browser.new_context(base_url=origins[0], **{**WIDE, **options})

    def on_request(request: Request) -> None:
        parts = urlsplit(request.url)
        is_remote = parts.scheme in {"http", "https", "ws", "wss"}
        if is_remote and f"{parts.scheme}://{parts.netloc}" not in origins:
            findings.append(Finding(Kind.OTHER_ORIGIN, request.url))

    def on_console(message: ConsoleMessage) -> None:
        if _POLICY in message.text:
            findings.append(Finding(Kind.POLICY, message.text))

    def on_error(error: WebError) -> None:
        findings.append(Finding(Kind.SCRIPT, str(error.error)))

    context.add_init_script(_REPORT_VIOLATIONS)
    context.on("request", on_request)
    context.on("console", on_console)
    context.on("weberror", on_error)
    try:
        yield context.new_page(), findings
    finally:
        # An answer of each page: events on their way arrive before it.
        for page in context.pages:
            page.evaluate("0")
        context.close()


def accessibility_findings(page: Page) -> list[str]:
    """Return what axe-core calls serious or critical on a page: rule, place and reason.

    It needs the scripts of its page: `NO_SCRIPT` stops its own too.
    """
    page.evaluate(_axe())
    # Rules of WCAG 2.2 that are off by default.
    options = {"rules": {"target-size": {"enabled": True}}}
    result = page.evaluate("(options) => axe.run(options)", options)
    return [
        f"{violation['id']} at {node['target']}: {node['failureSummary']}"
        for violation in result["violations"]
        if violation["impact"] in _TOLD_BY_AXE
        for node in violation["nodes"]
    ]


@cache
def _axe() -> str:
    return _AXE.read_text("utf-8")


def tab_to(page: Page, target: Locator, presses: int = 100) -> None:
    """Press Tab until an element has the focus, as one who has no mouse; fail if it never has."""
    for _ in range(presses):
        page.keyboard.press("Tab")
        if target.evaluate("(element) => element === document.activeElement"):
            return
    raise AssertionError(f"{presses} times Tab do not reach {target}.")
