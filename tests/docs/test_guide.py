"""mappings/guide.md, followed to the letter."""

from pathlib import Path

import pytest

from tests.docs.following import Typed, follow
from tests.docs.pages import GUIDE
from tests.docs.update import retyped


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> list[Typed]:
    """Return what the commands of the page print."""
    return follow(GUIDE, tmp_path_factory.mktemp("guide"))


def test_each_command_prints_what_the_page_says(typed: list[Typed]) -> None:
    wrong = [
        f"{GUIDE.name}:{each.block.line} printed\n{each.was}"
        for each in typed
        if each.shown != each.was
    ]
    assert not wrong, "\n".join([*wrong, "run: python -m tests.docs.update"])


PAGE = """\
Save as `a`:

```text
one
two
```

A slip in `a`:

```diff
-two
+three
```

```console
$ cat a
one
three
```

```console
$ cat a
one
…
```

```console
$ cat a
one
```
"""


def test_a_page_is_followed_to_the_letter(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE, "utf-8")
    slipped, abridged, wrong = follow(page, tmp_path)
    assert slipped.was == slipped.shown
    assert abridged.was == abridged.shown
    assert wrong.was == "$ cat a\none\ntwo\n"
    assert retyped(PAGE, [wrong]) == f"{PAGE[:-4]}two\n```\n"
