"""Renews the report on docs/checking.md: what `raceway check` says of the environment there.

`python -m benchmarks.checked_page`, when the machine does nothing else.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

import raceway
from raceway.envs.checking import CheckReport

PAGE = Path(__file__).parents[1] / "docs/checking.md"


def block(page: str, language: str) -> str:
    """The one block in that language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    return str(found)


def renewed(page: str, report: CheckReport) -> str:
    """The page with another report on it."""
    return page.replace(block(page, "text"), f"{report}\n")


def report_on(code: str) -> CheckReport:
    """Of the environment of the page, which is in a module of its own."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "drone.py").write_text(code, encoding="utf-8")
        sys.path.insert(0, folder)
        try:
            return raceway.check("drone:Drone")
        finally:
            sys.path.remove(folder)


def main() -> int:
    """Writes nothing that was measured while other programs were at work."""
    page = PAGE.read_text(encoding="utf-8")
    report = report_on(block(page, "python"))
    print(report)
    if report.is_disturbed:
        print(f"{PAGE.name} stays as it is: other programs were at work. Try again when it is quiet.", file=sys.stderr)
        return 1
    PAGE.write_text(renewed(page, report), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
