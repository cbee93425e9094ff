"""How names are compared, and that databases fold them as Python does."""

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from adapters.folding import BLANKS, LETTERS, UNSEEN, contains, fold, starts_words
from adapters.sql.dialects import dialect_named
from adapters.sql.dialects.base import MARK, Sql, Statement
from tests.databases import LOCALES
from tests.sets import SERVERS

FOLDED = (
    ("ÉLÉONORE E\u0301le\u0301onore", "eleonore eleonore"),
    ("Le Bœuf ŒDIPE", "le boeuf oedipe"),
    ("Strauß STRAUẞ", "strauss strauss"),
    ("Łukasz Øre Đorđe", "lukasz ore dorde"),
    ("İIıi", "iiii"),
    ("Saint\u2010Jean\u2011de\u2013Luz", "saint jean de luz"),
    ("J.-P. St.Cyr.", "j p st cyr"),
    ("L\u2019Hermite L\u02bcH L`H L\u00b4H", "l hermite l h l h l h"),
    ("  de \t la\u00a0\u202fTour\n", "de la tour"),
    ("Mar\u00adtin ﬁlip", "martin filip"),
    ("Ёлкин Σίσυφος", "елкин σισυφοσ"),
    ("أَحْمَد שָׁלוֹם", "احمد שלום"),
    ("\u304b\u3099 が か \u1100\u1175\u11b7", "か か か 김"),
    # Marks that make another letter.
    ("ติ๋ม तृप्ति", "ติ๋ม तृप्ति"),
    ("100%_\\", "100%_\\"),
    ("-", ""),
)


def test_fold():
    for text, folded in FOLDED:
        assert fold(text) == folded


@given(st.text(), st.text())
def test_words_are_folded_apart(one, other):
    both = fold(f"{one} {other}")
    assert fold(both) == both == f"{fold(one)} {fold(other)}".strip()


def test_matching():
    name = "de la tour"
    for part, starts, inside in (
        ("la to", True, True),
        ("our", False, True),
        ("tour de", True, False),
        ("t d l", True, False),
        ("de de", False, False),
        ("", False, False),
        (" ".join("d" * 11), False, False),
    ):
        assert starts_words(name, part) is starts
        assert contains(name, part) is inside
    assert starts_words("jean jeanne", "jean jean")
    assert not starts_words("", "")


PRINTED = (
    *map(chr, (*range(0x20, 0x7F), *range(0xA0, 0xB5), *range(0xB6, 0x180))),
    *(chr(code) for code in range(0x1E00, 0x1EFA)),
    *(*"\u2002\u2009\u202f\u3000\t\n", *BLANKS, *UNSEEN, *LETTERS),
    *(chr(code) for code in (*range(0x386, 0x38B), *range(0x391, 0x3A2))),
    *(chr(code) for code in (*range(0x3A3, 0x3CF), *range(0x400, 0x460))),
    *(chr(code) for code in (*range(0x531, 0x557), *range(0x561, 0x588))),
    *(chr(code) for code in (*range(0x591, 0x5C8), *range(0x5D0, 0x5EB))),
    *(chr(code) for code in (*range(0x610, 0x61B), *range(0x620, 0x6EE))),
    *(chr(code) for code in (*range(0x901, 0x960), *range(0xE01, 0xE3B))),
    *(chr(code) for code in (*range(0x3041, 0x3097), *range(0x30A1, 0x30FB))),
    *(chr(code) for code in range(0xAC00, 0xD7A4, 97)),
)
"""What names are written in, Latin or not, and what parts words."""


@pytest.mark.parametrize("locale", LOCALES)
def test_postgresql_folds_alike(new_postgresql, locale):
    engine = sa.create_engine(new_postgresql(locale))
    texts = [f"a{character}b{character.upper()}" for character in PRINTED]
    folded = dialect_named("postgresql").fold(Sql("t"))
    query = Statement(
        f"SELECT t, {folded.sql} FROM unnest({MARK}::text[]) AS t",
        (*folded.values, texts),
    )
    with engine.connect() as connection:
        rows = connection.exec_driver_sql(query.text("%s"), query.values).all()
    engine.dispose()
    assert len(rows) == len(texts)
    assert {text: made for text, made in rows if made != fold(text)} == {}


@pytest.mark.parametrize("kind", SERVERS)
def test_mariadb_and_mysql_find_alike(kind, request):
    """Their accents are told by a collation, so what is compared is what a LIKE finds."""
    engine = sa.create_engine(request.getfixturevalue(f"{kind}_server").new_database())
    texts = [f"a{character}b{character.upper()}" for character in PRINTED]
    folded = dialect_named("mysql").fold(Sql("t"))
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE names (t VARCHAR(20), needle TEXT)")
        connection.execute(
            sa.text("INSERT INTO names VALUES (:t, :needle)"),
            [{"t": text, "needle": _pattern(fold(text))} for text in texts],
        )
        found = f"{folded.sql} LIKE needle ESCAPE '!'"
        query = Statement(f"SELECT t, {found} FROM names", folded.values)
        rows = connection.exec_driver_sql(query.text("%s"), query.values).all()
    engine.dispose()
    assert len(rows) == len(texts)
    assert [text for text, is_found in rows if not is_found] == []


def _pattern(text):
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")
