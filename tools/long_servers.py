"""Stops make test-long at once when the servers it compares with are not here.

Looks where the conformance tests look: at the programs in HEADRACE_TEST_SERVERS and at redis-server on PATH.
"""

import sys
from pathlib import Path

NEEDED = ("7.0", "8.6")


def main() -> int:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
    from support.servers import present_kinds

    present = [kind.name for kind in present_kinds()]
    missing = [version for version in NEEDED if not any(name.startswith(f"redis-{version}.") for name in present)]
    for version in missing:
        print(
            f"missing: no Redis {version} was found; name its redis-server program in HEADRACE_TEST_SERVERS "
            f"(several are joined by a colon). Here are: {', '.join(present)}.",
            file=sys.stderr,
        )
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
