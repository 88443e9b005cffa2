"""What is shipped and what is tracked: typing marker, version, build, pins, no trace of one machine."""

import re
import subprocess
import sys
import tomllib
from importlib import import_module, metadata, resources
from pathlib import Path

import pytest
from setuptools import find_packages

import headrace
from headrace.cli.version import loaded_build, version_line

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PINS = sorted((ROOT / "requirements").glob("*.txt"))

# In pieces, so that this file does not find itself.
HOME_OF_SOMEBODY = re.compile(r"(?<![\w.~:/-])/(?:ho" r"me|ro" r"ot|Us" r"ers|wo" r"rk|op" r"t)/[\w.]")
PACKAGE_INDEX = re.compile(
    r"pypi\.o" r"rg/simple|pythonhos" r"ted|--(?:extra-)?index-u" r"rl|--find-li" r"nks|fi" r"le:///"
)


def tracked_files() -> list[Path]:
    """What git tracks, or in an unpacked archive everything that is not built."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
        return [ROOT / name.decode() for name in listed.split(b"\0") if name and (ROOT / name.decode()).is_file()]
    made = {".venv", "build", "__pycache__"}
    files = (path for path in ROOT.rglob("*") if path.is_file())
    return [path for path in files if not made.intersection(part for part in path.relative_to(ROOT).parts)]


def lines_that_match(pattern: re.Pattern[str], files: list[Path]) -> list[str]:
    found = []
    for path in files:
        for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
            if pattern.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    return found


def hot_modules() -> list[str]:
    paths = {path for pattern in SETTINGS["tool"]["headrace"]["hot"] for path in ROOT.glob(pattern)}
    names = (path.relative_to(ROOT / "src").with_suffix("") for path in paths if path.name != "__init__.py")
    return sorted(".".join(name.parts) for name in names)


def test_type_checkers_of_users_see_our_types() -> None:
    assert resources.files("headrace").joinpath("py.typed").is_file()
    assert "py.typed" in SETTINGS["tool"]["setuptools"]["package-data"]["headrace"]


def test_every_file_beside_the_modules_is_shipped() -> None:
    package = ROOT / "src" / "headrace"
    beside = {path for path in tracked_files() if path.is_relative_to(package) and path.suffix != ".py"}
    patterns = SETTINGS["tool"]["setuptools"]["package-data"]["headrace"]

    assert beside == {path for pattern in patterns for path in package.glob(pattern)}


def test_every_folder_with_modules_is_shipped_the_one_that_registers_the_spark_format_too() -> None:
    source = ROOT / "src"
    folders = {path.parent for path in tracked_files() if path.is_relative_to(source) and path.suffix == ".py"}

    packages = set(find_packages(str(source)))

    assert packages == {".".join(folder.relative_to(source).parts) for folder in folders}
    assert "pyspark_headrace" in packages


def test_the_installed_version_is_the_one_in_the_source() -> None:
    assert metadata.version("headrace") == headrace.__version__
    assert headrace.__version__ in version_line()


@pytest.mark.parametrize("name", hot_modules())
def test_every_hot_module_comes_from_the_build_that_version_names(name: str) -> None:
    origin = import_module(name).__file__

    assert origin is not None
    assert origin.endswith(".py") == (loaded_build() == "plain")


def test_the_editable_install_is_plain_so_that_an_edit_is_what_runs() -> None:
    assert not list((ROOT / "src").rglob("*.so"))


def test_no_tracked_file_names_a_folder_of_one_machine() -> None:
    assert not lines_that_match(HOME_OF_SOMEBODY, tracked_files())


def test_no_tracked_file_names_a_package_index() -> None:
    assert not lines_that_match(PACKAGE_INDEX, tracked_files())


@pytest.mark.parametrize("pins", PINS, ids=lambda path: path.name)
def test_every_pin_is_exact_and_has_hashes(pins: Path) -> None:
    requirements = pins.read_text("utf-8").replace("\\\n", " ").splitlines()[1:]

    assert requirements
    assert not [
        line for line in requirements if not re.match(r"[\w.-]+(\[[\w,]+\])?==\S+ .*--hash=sha256:\w{64}", line)
    ]


def test_every_lint_exception_of_the_project_carries_its_reason() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    ignored = re.findall(r'^    "[A-Z]+[0-9]+",.*$', text, re.MULTILINE)
    per_file = text.split("[tool.ruff.lint.per-file-ignores]\n", 1)[1].split("\n[", 1)[0].strip().splitlines()

    assert ignored and per_file
    assert not [line for line in (*ignored, *per_file) if not re.search(r"# \w.{10,}\.$", line)]


def test_python_dash_m_and_the_command_are_the_same_program() -> None:
    by_module = subprocess.run([sys.executable, "-m", "headrace", "--version"], check=True, capture_output=True)

    assert by_module.stdout.decode().strip() == version_line()
    assert metadata.entry_points(group="console_scripts")["headrace"].value == "headrace.cli.main:run"
