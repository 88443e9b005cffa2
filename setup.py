"""Builds the hot rooms with mypyc where that is possible, and plain Python everywhere else.

All hot files go through one mypycify call: only then are calls between the rooms C calls. The result is all or
nothing; a half-compiled package would import and then fail in odd places. HEADRACE_PURE=1 asks for plain Python.
The list of hot files is in pyproject.toml, under [tool.headrace].
"""

import os
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
# These only describe the package; compiling for them would double the time of every build.
DESCRIBING = {"dist_info", "egg_info", "sdist"}
# hiredis may be absent while building; its import is then Any, which is correct and a little slower. The build stops
# at a type error, since mypyc relies on types, but not at what is only untidy: that is for make lint.
MYPY_OPTIONS = ["--ignore-missing-imports", "--no-warn-unused-ignores", "--no-warn-unreachable"]


def main() -> None:
    extensions, why_plain = compiled_extensions()
    if why_plain:
        say_plain(why_plain)
    setup(
        ext_modules=extensions,
        cmdclass={"build_ext": AllOrNothing},
        options={"build": {"build_base": "build/setuptools"}},
    )


def hot_files() -> list[str]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    found = {path for pattern in settings["tool"]["headrace"]["hot"] for path in ROOT.glob(pattern)}
    return sorted(path.relative_to(ROOT).as_posix() for path in found if path.name != "__init__.py")


def compiled_extensions() -> tuple[list[Any], str]:
    """The extensions to build, or none and the reason why."""
    if DESCRIBING.intersection(sys.argv):
        return [], ""
    if os.environ.get("HEADRACE_PURE", "") not in ("", "0"):
        return [], "HEADRACE_PURE is set"
    try:
        from mypyc.build import mypycify
    except ImportError:
        return [], "mypyc is not installed"
    files = hot_files()
    if not files:
        return [], "there is nothing to compile"
    return mypycify([*MYPY_OPTIONS, *files], opt_level="3", debug_level="0", target_dir="build/mypyc"), ""


class AllOrNothing(build_ext):
    """Builds every extension or, when the C compiler fails, leaves none behind."""

    def run(self) -> None:
        try:
            super().run()
        except Exception as error:  # Any compiler failure, whatever its class: plain Python is the answer to all.
            self.remove_what_was_built()
            self.extensions = []
            say_plain(f"the C compiler failed ({error})")

    def remove_what_was_built(self) -> None:
        for extension in self.extensions:
            Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
        shutil.rmtree(self.build_temp, ignore_errors=True)


def say_plain(why: str) -> None:
    print(f"headrace: built as plain Python: {why}. It behaves the same and runs slower.", file=sys.stderr)


main()
