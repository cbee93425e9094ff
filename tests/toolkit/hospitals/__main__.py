"""Print the shares of slots of a draft of each hospital that are right, marked, open and wrong."""

from pathlib import Path
from tempfile import TemporaryDirectory

from app.cli import main
from tests.toolkit import hospitals

for name, key in hospitals.KEYS.items():
    with TemporaryDirectory() as folder:
        url, file = f"sqlite:///{folder}/{name}.sqlite", Path(folder) / "new.yaml"
        hospitals.fill(name, url)
        main(["mapping", "new", "--from", url, "--out", str(file), *key["options"]])
        score = hospitals.score(file.read_text("utf-8"), key)
    print(f"{name}: {score}")
