"""`encounters openapi`: the OpenAPI description of this deployment, for client generators.

Settings → mapping file → offer. No source is connected, and no variable of the mapping file is
read: a build that generates clients has neither.
"""

import os
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from adapters import open_adapter
from adapters.mapping.load import load_mapping
from adapters.mapping.profile import profile_of
from app.auth import scopes_of
from app.config import read_settings
from app.console import FINE, CannotRunError, print_json
from app.offer import compute_offer
from app.openapi import openapi

_SETTINGS = ("mapping", "base_url", "scopes", "token_url")


def run() -> int:
    """Print the description of the deployment that the environment configures."""
    print_json(_description(os.environ))
    return FINE


def _description(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the OpenAPI description of the deployment that settings configure.

    Raises CannotRunError, AdapterError, MappingError.
    """
    reading = read_settings(environ)
    entries = (entry for entry in reading.entries if entry.setting.field in _SETTINGS)
    if faults := [entry.fault for entry in entries if entry.fault]:
        raise CannotRunError("\n".join(faults))
    values = reading.values
    mapping = load_mapping(values["mapping"], None)
    with closing(open_adapter(mapping)) as adapter:
        offer = compute_offer(profile_of(mapping), adapter.capabilities)
    return openapi(
        offer,
        values["base_url"],
        mapping.name,
        scopes_of(values["scopes"]),
        values["token_url"],
    )
