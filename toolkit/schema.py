"""`encounters mapping schema`: JSON Schema, so that an editor completes and checks."""

from adapters.mapping.schema import editor_schema
from app.console import FINE, print_json


def run() -> int:
    """Print the schema of mapping files."""
    print_json(editor_schema())
    return FINE
