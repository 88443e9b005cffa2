"""The pages keep their word: their Python runs, their links lead somewhere, their options exist.

A block that cannot end by itself, since it follows a stream, has the comment `<!-- shown only: why -->` above it.
"""

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from headrace.cli import exit_codes
from headrace.testing import RunningBroker, running_broker

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("news/*.md"), *ROOT.glob("*/README.md")])
PAGES_WITH_PYTHON = [page for page in PAGES if "```python\n" in page.read_text("utf-8")]
OVER_LINES = re.MULTILINE | re.DOTALL
PATIENCE_S = 30


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker() as broker:
        yield broker


@pytest.mark.parametrize("page", PAGES_WITH_PYTHON, ids=name_of)
def test_the_python_of_a_page_runs_from_top_to_bottom(page: Path, broker: RunningBroker) -> None:
    text = re.sub(r"^<!-- shown only: .*? -->\n```python\n.*?^```$", "", page.read_text("utf-8"), flags=OVER_LINES)
    blocks = re.findall(r"^```python\n(.*?)^```$", text, OVER_LINES)
    names: dict[str, object] = {"__name__": name_of(page)}

    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.alarm(PATIENCE_S)  # A block that waits for ever ends the run here instead of hanging it.
    for block in blocks:
        here = re.sub(r"redis://localhost(?::\d+)?", broker.url, block).replace("7379", str(broker.port))
        exec(compile(here, name_of(page), "exec"), names)

    signal.alarm(0)
    for value in names.values():
        if isinstance(value, redis.Redis):
            value.close()
    with redis.Redis.from_url(broker.url) as client:
        client.flushall()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8"))

    assert not [link for link in links if not (page.parent / link).exists()]


def test_the_page_on_serve_names_its_options_and_no_others() -> None:
    import typer.main

    from headrace.cli.main import app

    serve = typer.main.get_group(app).commands["serve"]
    options = {name for parameter in serve.params for name in parameter.opts if name.startswith("--")}
    page = (ROOT / "docs/serve.md").read_text("utf-8")

    assert set(re.findall(r"^\| `(--[a-z-]+)`", page, re.MULTILINE)) == options - {"--help"}


def test_the_page_on_the_command_line_lists_the_exit_codes() -> None:
    page = (ROOT / "docs/command-line.md").read_text("utf-8")
    codes = {value for name, value in vars(exit_codes).items() if name.isupper()}

    assert {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)} == codes


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    named = set(re.findall(r'"([\w/-]+\.md)"', (ROOT / "zensical.toml").read_text("utf-8")))

    assert {page.relative_to(ROOT / "docs").as_posix() for page in ROOT.glob("docs/**/*.md")} == named
