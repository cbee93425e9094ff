"""What pip-audit found out, told plainly: a package that it could not ask about is not fine.

    .venv/bin/python .ci/weaknesses.py ANSWER

reads its answer as JSON. Exit status: 0 no weakness is known; 1 some are; 3 none was found, but
not all could be asked about.
"""

import json
import sys
from pathlib import Path

NONE, FOUND, UNKNOWN = 0, 1, 3


def main(answer: Path) -> int:
    """Print what is known, and return the exit status."""
    text = answer.read_text("utf-8")
    packages = json.loads(text)["dependencies"] if text.strip() else []
    weak = [each for each in packages if each.get("vulns")]
    # A registry without the data says of each package that it is not there.
    skipped = [each["name"] for each in packages if "skip_reason" in each]
    for each in weak:
        for known in each["vulns"]:
            mended = ", ".join(known["fix_versions"]) or "no release yet"
            print(
                f"{each['name']} {each['version']}: {known['id']}, mended in: {mended}"
            )
    asked = len(packages) - len(skipped)
    print(f"Weaknesses: {asked} packages asked about, {len(weak)} have some.")
    if skipped or not packages:
        print(f"UNKNOWN: the database told nothing of {', '.join(skipped) or 'any'}.")
    if weak:
        return FOUND
    return UNKNOWN if skipped or not packages else NONE


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
