"""Every text is translated, and none stands in a template or in code."""

import re
from pathlib import Path

import pytest
from jinja2 import Environment

from explorer.language import catalogue as texts_of
from tests.explorer import catalogue

_TAGS = re.compile(r"<[^<>]*>", re.DOTALL)
_NAMES = {"FINESS", "JSON"}
"""What is called the same in every language."""


@pytest.mark.parametrize("language", catalogue.TRANSLATED)
def test_every_text_is_translated(language: str) -> None:
    """`python -m tests.explorer.catalogue` writes what is missing here."""
    translated = [message for message in catalogue.read(language) if message.id]
    marked = {(m.context, m.id) for m in catalogue.extracted() if m.id}
    assert {(m.context, m.id) for m in translated} == marked
    for message in translated:
        plural = isinstance(message.id, tuple)
        placeholders = re.findall(
            r"%\(\w+\)s", message.id[-1] if plural else message.id
        )
        for text in message.string if plural else [message.string]:
            assert text, message.id
            assert {*re.findall(r"%\(\w+\)s", text)} == {*placeholders}, message.id
    assert texts_of(language).gettext("Stays") != "Stays"


@pytest.mark.parametrize(
    "file",
    sorted((catalogue.PACKAGE / "templates").glob("*.html")),
    ids=lambda f: f.name,
)
def test_no_template_has_a_text_of_its_own(file: Path) -> None:
    tokens = Environment(extensions=["jinja2.ext.i18n"]).lex(file.read_text())
    # What a tag holds of Jinja stands between its ends: one character keeps them apart.
    parts = [
        text if kind == "data" else "·"
        for _, kind, text in tokens
        if kind != "operator"
    ]
    shown = _TAGS.sub(" ", re.sub("·+", "·", "".join(parts)))
    words = set(re.findall(r"[^\W\d_]{2,}", re.sub(r"&\w+;", "", shown)))
    assert words <= _NAMES
    attributes = re.findall(
        r'(?:aria-label|placeholder|title|alt)="([^"·]*)"', "".join(parts)
    )
    assert not [text for text in attributes if re.search(r"[^\W\d_]", text)]
