"""Every stream transcript of the source documents, as a session (rows 294 and 295)."""

from pathlib import Path

import pytest

from support.session import Session

SOURCES = Path(__file__).parent / "sources"
NEEDS_CLAIM = {"msgq-and-xreadgroup-claim.session"}
EVERYWHERE = sorted(path.name for path in SOURCES.glob("*.session") if path.name not in NEEDS_CLAIM)


@pytest.mark.parametrize("name", EVERYWHERE)
def test_the_document_tells_the_truth(talk: Session, name: str) -> None:
    """Rows 294, 295."""
    talk.play((SOURCES / name).read_text())


@pytest.mark.since("8.4")
@pytest.mark.parametrize("name", sorted(NEEDS_CLAIM))
def test_the_document_tells_the_truth_about_claiming(talk: Session, name: str) -> None:
    """Row 294."""
    talk.play((SOURCES / name).read_text())
