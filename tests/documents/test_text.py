"""Plain text, in whatever encoding."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractor.documents import load
from extractor.errors import DocumentError, EmptyDocument, UnsupportedDocument

PRINTABLE = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Co", "Cn", "Zl", "Zp")), min_size=1)


@given(PRINTABLE.filter(lambda text: text.strip() and "\ufeff" not in text and "\x85" not in text))
def test_utf8_text_comes_back(text: str) -> None:
    """Whatever is written in UTF-8 is read as it was written."""
    assert load(f"a {text} b".encode(), name="a.txt").text == f"a {text} b"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"])
def test_common_encodings_are_detected(encoding: str) -> None:
    """Western business text is read right in each encoding that it is commonly written in, marked or not."""
    text = "Rechnung für Übersee: 1.234,56 €, „zahlbar“ bis März\nGrüße aus Köln"
    assert load(text.encode(encoding), name="a.txt").text == text


def test_control_characters_and_nul_are_stripped_and_line_ends_are_one_kind() -> None:
    """NUL bytes and control characters, which databases refuse, never reach the model."""
    assert load(b"total\x00: 12\x07.00\r\nnext\rline", name="a.txt").text == "total: 12.00\nnext\nline"


def test_a_form_feed_begins_a_page() -> None:
    """Printed text keeps its pages, and the model sees where each begins."""
    document = load(b"one\f\ntwo", name="a.txt")
    assert [page.text for page in document.pages] == ["one", "two"]
    assert "--- page 2 ---\ntwo" in document.text


@given(st.binary(max_size=400))
def test_random_bytes_never_raise_anything_but_a_document_error(data: bytes) -> None:
    """Hostile bytes are a document error or a document, never another exception."""
    for name in ("a.txt", "a.pdf", "a"):
        try:
            load(data, name=name)
        except DocumentError as error:
            assert name in str(error)  # noqa: PT017 - either way is right, and the error has to name the file


@pytest.mark.parametrize(
    ("data", "name", "what"),
    [
        (b"\x89PNG\r\n\x1a\n....", "scan.png", "PNG image"),
        (b"PK\x03\x04....", "a.docx", "Word document"),
        (b"<!DOCTYPE html><p>x</p>", "a.txt", "HTML page"),
        (b"From: a@b.c\n\nhello", "a.eml", "e-mail"),
        (bytes(range(256)), "a.bin", "binary"),
    ],
)
def test_other_kinds_are_refused_by_what_they_are(data: bytes, name: str, what: str) -> None:
    """A kind of file that is not read yet is refused in one line that names the kind."""
    with pytest.raises(UnsupportedDocument, match=what) as caught:
        load(data, name=name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"  \n\t \n"])
def test_empty_text_is_a_failure_before_any_ask(data: bytes) -> None:
    """A file without text is an error of its own kind."""
    with pytest.raises(EmptyDocument):
        load(data, name="a.txt")
