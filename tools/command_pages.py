"""Write docs/commands/ from the declared commands.

.venv/bin/python tools/command_pages.py            write the pages
.venv/bin/python tools/command_pages.py --check    exit 1 when a page is not what the declarations say
"""

import sys
from pathlib import Path

from headrace.commands.catalogue import pages
from headrace.commands.table import MODULES

FOLDER = Path("docs/commands")


def main() -> int:
    assert MODULES  # Importing them has declared every command.
    wanted = pages()
    present = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    if "--check" in sys.argv[1:]:
        stale = sorted(name for name in wanted.keys() | present.keys() if wanted.get(name) != present.get(name))
        if stale:
            print(f"docs/commands is out of date ({', '.join(stale)}). Run: .venv/bin/python tools/command_pages.py")
        return 1 if stale else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in present.keys() - wanted.keys():
        (FOLDER / name).unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    print(f"{len(wanted)} pages in {FOLDER}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
