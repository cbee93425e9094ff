"""`encounters doctor`: all that a service stands on, looked at from where it runs.

What is printed names settings, not what they hold: no host, no account, no secret. Paths,
tables and columns of the mapping stand there, as in `mapping check`.
"""

import argparse
import os
from collections.abc import Iterator

from app.settings import Settings, SettingsError
from app.tools.doctor.identity import identity_checks
from app.tools.doctor.rounds import Check, Looked, look
from app.tools.doctor.site import site_checks
from app.tools.doctor.sources import mapping_checks
from app.tools.doctor.store import store_checks
from app.tools.report import FINDINGS, FINE, CannotRunError, Severity, print_json


def run(options: argparse.Namespace) -> int:
    """Look at everything side by side and print what was seen, and what to do."""
    try:
        settings = Settings.from_environ(os.environ)
    except SettingsError as error:
        raise CannotRunError(f"{error}\nNothing was looked at.") from error
    found = look(list(_checks(settings)), options.seconds)
    if options.json:
        print_json({"checks": [each.as_json() for each in found]})
    else:
        _print(found)
    wrong = any(each.is_wrong for each in found)
    return FINDINGS if wrong else FINE


def _checks(settings: Settings) -> Iterator[Check]:
    yield from site_checks(settings)
    yield from mapping_checks(settings)
    yield from store_checks(settings)
    yield from identity_checks(settings)


def _print(found: list[Looked]) -> None:
    wide = max(len(each.subject) for each in found)
    longest = max(map(len, Severity))
    for each in found:
        for seen in each.seen:
            word = seen.severity or "ok"
            print(f"{each.subject:{wide}}  {word:{longest}}  {seen.text}")
            if seen.remedy:
                print(f"{'':{wide}}  {'→':{longest}}  {seen.remedy}")
