"""Write the generated parts of the pages anew: `python -m tests.docs.update`.

What a command claims to be answered is left alone: a person looks at that.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.docs import generated
from tests.docs.pages import OPERATORS, README, rewritten
from tests.docs.running import running_demo

PARTS: tuple[tuple[str, Callable[[], str]], ...] = (
    ("settings", generated.settings_table),
    ("refused-settings", generated.refused_settings),
    ("refused-mapping", generated.refused_mapping),
)
"""The parts of docs/operators.md."""


def main() -> None:
    """Write them."""
    page = OPERATORS.read_text("utf-8")
    for name, part in PARTS:
        page = rewritten(page, name, part())
    OPERATORS.write_text(page, "utf-8")
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        (folder / "answers").mkdir()
        with running_demo(folder) as demo:
            answer = generated.first_answer(demo, folder / "answers")
    page = README.read_text("utf-8")
    README.write_text(rewritten(page, "first-answer", answer), "utf-8")


if __name__ == "__main__":
    main()
