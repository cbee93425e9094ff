"""The texts of the explorer, as its code and templates mark them.

`python -m tests.explorer.catalogue` writes new ones into the catalogues, to be translated.
"""

from pathlib import Path

from babel.messages import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po
from jinja2.ext import babel_extract

import explorer
from explorer.language import LANGUAGES, LOCALES

PACKAGE = Path(explorer.__file__).parent
_METHODS = [("**.py", "python"), ("templates/**.html", babel_extract)]
_KEYWORDS = {**dict.fromkeys(("_", "gettext", "mark")), "ngettext": (1, 2)}
_KEYWORDS["pgettext"] = ((1, "c"), 2)
TRANSLATED = [language for language in LANGUAGES if language != "en"]


def extracted() -> Catalog:
    """Return every text that is marked."""
    catalog = Catalog(project="encounters")
    for _, _, message, _, context in extract_from_dir(
        PACKAGE, method_map=_METHODS, keywords=_KEYWORDS, comment_tags=()
    ):
        catalog.add(message, context=context)
    return catalog


def file_of(language: str) -> Path:
    return LOCALES / language / "LC_MESSAGES" / "explorer.po"


def read(language: str) -> Catalog:
    with file_of(language).open("rb") as file:
        return read_po(file, locale=language)


def main() -> None:
    for language in TRANSLATED:
        present = file_of(language).exists()
        catalog = read(language) if present else Catalog(language)
        catalog.update(extracted(), no_fuzzy_matching=True)
        catalog.obsolete.clear()
        catalog.fuzzy, catalog.header_comment = False, f"# {LANGUAGES[language]}."
        with file_of(language).open("wb") as file:
            write_po(file, catalog, no_location=True, sort_output=True, width=100)


if __name__ == "__main__":
    main()
