"""Every text is translated, and none stands in a template or in code."""

import re
from pathlib import Path

import pytest
from babel.messages.frontend import CommandLineInterface
from babel.messages.pofile import read_po
from jinja2 import Environment

import explorer
from explorer.language import LANGUAGES, LOCALES, catalogue

PACKAGE = Path(explorer.__file__).parent
NAMES = {"FINESS", "JSON"}
"""What is called the same in every language."""


@pytest.mark.parametrize("language", [name for name in LANGUAGES if name != "en"])
def test_every_text_is_translated(language, tmp_path):
    """`make texts` writes what is missing here."""
    template = tmp_path / "explorer.pot"
    options = f"-F {Path(__file__).parent / 'babel.cfg'} -k mark -o {template}"
    command = f"pybabel -q extract {options} {PACKAGE}"
    CommandLineInterface().run(command.split())
    with template.open("rb") as file:
        marked = {(message.context, message.id) for message in read_po(file)}
    with (LOCALES / language / "LC_MESSAGES/explorer.po").open("rb") as file:
        translated = read_po(file, locale=language)
    assert {(message.context, message.id) for message in translated} == marked
    assert [*translated.check()] == []
    for message in translated:
        plural = isinstance(message.id, tuple)
        original = message.id[-1] if plural else message.id
        for text in message.string if plural else [message.string]:
            assert text, original
            names = {*re.findall(r"%\(\w+\)s", text)}
            assert names == {*re.findall(r"%\(\w+\)s", original)}, original
    assert catalogue(language).gettext("Stays") != "Stays"


@pytest.mark.parametrize("file", sorted((PACKAGE / "templates").glob("*.html")))
def test_no_template_has_a_text_of_its_own(file):
    tokens = Environment(extensions=["jinja2.ext.i18n"]).lex(file.read_text())
    # What a tag holds of Jinja stands between its ends: one character keeps them apart.
    parts = [
        text if kind == "data" else "·"
        for _, kind, text in tokens
        if kind != "operator"
    ]
    code = re.sub("·+", "·", "".join(parts))
    shown = re.sub(r"<[^<>]*>", " ", code, flags=re.DOTALL)
    words = re.findall(r"[^\W\d_]{2,}", re.sub(r"&\w+;", "", shown))
    assert {*words} <= NAMES
    attributes = re.findall(r'(?:aria-label|placeholder|title|alt)="([^"·]*)"', code)
    assert not [text for text in attributes if re.search(r"[^\W\d_]", text)]
