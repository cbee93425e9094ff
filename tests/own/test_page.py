"""docs/change/own-adapter.md: its code is that of the package that the tests install."""

import inspect

from adapters.contract import Adapter
from tests.docs.pages import CHANGE, blocks, section, table
from tests.own.kestrel.tests.filled import MAPPING
from tests.own.package import SOURCE

PAGE = (CHANGE / "own-adapter.md").read_text("utf-8")
FILES = sorted(SOURCE.rglob("*.py"))


def test_its_code_is_that_of_the_package() -> None:
    code = "\n".join(file.read_text("utf-8") for file in FILES)
    shown = list(blocks(PAGE, "python"))
    assert len(shown) > 3
    for block in shown:
        assert block.text in code, block.text


def test_its_files_are_those_of_the_package() -> None:
    (shown,) = blocks(PAGE, "yaml")
    assert shown.text == MAPPING
    (drawn,) = blocks(section(PAGE, "The package"), "text")
    named = [line.split()[0] for line in drawn.text.splitlines()[1:]]
    files = {*FILES, SOURCE / "pyproject.toml"}
    assert sorted(named) == sorted(str(file.relative_to(SOURCE)) for file in files)


def test_every_member_of_an_adapter_is_explained() -> None:
    members = [n for n in vars(Adapter) if not n.startswith("_")]
    assert [row[0] for row in table(PAGE, "member")] == members
    assert all(inspect.getdoc(getattr(Adapter, name)) for name in members)
