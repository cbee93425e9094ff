"""The FHIR side of the service: `create_app` joins its parts."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flask import Flask

    from adapters.contract import Adapter
    from app.settings import Settings


def create_app(
    settings: "Settings | None" = None, adapter: "Adapter | None" = None
) -> "Flask":
    """Return the service, its parts joined.

    Without `settings` they are read from the environment; without `adapter` the mapping
    file says which hospital system it is. Raises SettingsError, MappingError.
    """
    # Here: every command and every process reads this file, few of them serve.
    from app.application import joined
    from app.settings import Settings

    return joined(settings or Settings.from_environ(os.environ), adapter)
