"""By which door documents come in, and what is refused at it."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from extractor import plugins
from extractor.documents import Document, Page, load
from extractor.errors import (
    ConfigurationError,
    EmptyDocument,
    EncryptedDocument,
    MissingExtra,
    UnreadableDocument,
    UnsupportedDocument,
    UsageError,
)

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
MAIL = b"MIME-Version: 1.0\r\nFrom: a@b.example\r\n\r\nhello"


def test_a_path_bytes_and_an_open_file_are_the_same_document(tmp_path: Path) -> None:
    """The identity is the hash of the bytes; the source is what people know it by."""
    path = tmp_path / "letter.txt"
    path.write_bytes(b"Dear all")
    with path.open("rb") as stream:
        found = [load(path), load(str(path)), load(b"Dear all", name="letter.txt"), load(stream, name="x/letter.txt")]
    assert len({document.id for document in found}) == 1
    assert [document.name for document in found] == ["letter.txt"] * 4
    assert [document.source for document in found] == [str(path), str(path), "letter.txt", "x/letter.txt"]
    assert load(io.BytesIO(b"Dear all")).source == "file"


def test_what_is_no_source_is_an_error_of_usage(tmp_path: Path) -> None:
    """A file in text mode has lost its bytes already; nothing else is a document at all."""
    with pytest.raises(UsageError, match="binary mode"):
        load(io.StringIO("text"))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="not NoneType"):
        load(None)  # type: ignore[arg-type]


def test_too_large_files_are_refused_before_they_are_read(tmp_path: Path) -> None:
    """A limit holds for paths, open files and bytes, and says both sizes."""
    path = tmp_path / "big.txt"
    with path.open("wb") as stream:
        stream.truncate(3 << 40)
    with pytest.raises(UnsupportedDocument, match=r"3145728 MB is more than the 100 MB that are read"):
        load(path)
    for source in (b"x" * 11, io.BytesIO(b"x" * 11)):
        with pytest.raises(UnsupportedDocument, match="more than"):
            load(source, limit=10)
    assert load(b"x" * 10, limit=10).size == 10


def test_what_cannot_be_opened_is_one_line_with_the_reason(tmp_path: Path) -> None:
    """Folders, vanished files, links in a circle, and pipes, which would be waited on for ever."""
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    os.mkfifo(tmp_path / "pipe")
    reasons = {"": "it is a folder", "gone": "No such file", "circle": "symbolic links", "pipe": "no regular file"}
    for name, reason in {**reasons, "a\0b": "cannot be read", "n" * 300: "name too long"}.items():
        with pytest.raises(UnreadableDocument, match=f"cannot be read(: .*{reason}|)") as caught:
            load(tmp_path / name)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "name", "what"),
    [
        (b"\x89PNG\r\n\x1a\n....", "scan.png", "PNG image"),
        (b"\xff\xd8\xff\xe0....", "scan.pdf", "JPEG image"),
        (b"BM\x36\0\0\0\0\0\0\0", "scan.bmp", "BMP image"),
        (b"PK\x03\x04....", "a.docx", "Word document"),
        (b"PK\x03\x04....xl/workbook.xml", "a", "Excel workbook"),
        (b"PK\x03\x04....", "a", "ZIP archive"),
        (OLE + "__substg1.0_".encode("utf-16-le"), "a", "Outlook message"),
        (OLE, "a.doc", "Word document"),
        (b"{\\rtf1 hello}", "a.txt", "RTF document"),
        (b"<!DOCTYPE html><p>x</p>", "a.txt", "HTML page"),
        ("<html>".encode("utf-16"), "a", "HTML page"),
        (b'<?xml version="1.0"?><a/>', "a", "XML file"),
        (b"From: a@b.c\n\nhello", "a.eml", "e-mail"),
        (MAIL, "a.txt", "e-mail"),
        (b'{"a": 1}', "gold.jsonl", "JSON file"),
        (bytes(range(256)), "a.dwg", "binary .dwg file"),
        (bytes(range(256)), "a.txt", "binary file of an unknown kind"),
        (bytes(range(256)), "a", "binary file of an unknown kind"),
    ],
)
def test_other_kinds_are_refused_by_what_they_are(data: bytes, name: str, what: str) -> None:
    """A kind of file that is not read yet is refused in one line that names the kind, whatever the file is called."""
    with pytest.raises(UnsupportedDocument, match=what) as caught:
        load(data, name=name)
    assert str(caught.value).startswith(f"{name}: ")
    assert "plain text and PDF" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.csv", "a.tsv", "a.log", "a", "README", "a.unknown", "a.TXT"])
def test_plain_text_is_read_under_any_name_that_is_no_other_kind(name: str) -> None:
    """Text is text; that its words begin like some format's first bytes changes nothing."""
    for text in (
        "BMW invoice",
        "GIF8 is no picture",
        "From: me\nTo: you\n\nhello",
        "see %PDF-1.4 for that",
        "<a> & <b>",
    ):
        assert load(text.encode(), name=name).text == text


@pytest.mark.parametrize(("name", "what"), [("a.pdf", "PDF"), ("a.docx", "Word document"), ("a.jpg", "JPEG image")])
def test_what_is_not_what_its_name_says_is_unreadable(name: str, what: str) -> None:
    """An error page saved under the name of an invoice is not asked about."""
    for data in (b"404 not found", bytes(range(256))):
        with pytest.raises(UnreadableDocument, match=f"{name}: the file is no {what}, whatever its name says"):
            load(data, name=name)


def test_an_office_document_with_a_password_says_so() -> None:
    """The password is the reason, not the kind."""
    with pytest.raises(EncryptedDocument, match="asks for a password"):
        load(OLE + "EncryptedPackage".encode("utf-16-le"), name="a")


@pytest.fixture
def declare(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, object], None]:
    """Declares a loader of somebody else under a name."""
    module = types.ModuleType("third_party_loaders")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    declared = dict(plugins.declared("extractor.loaders"))
    monkeypatch.setattr(plugins, "declared", lambda group: declared)

    def add(name: str, loader: object) -> None:
        setattr(module, f"load_{len(declared)}", loader)
        declared[name] = f"{module.__name__}:load_{len(declared)}"

    return add


def document(data: bytes, source: str) -> Document:
    """What the simplest of loaders returns."""
    return Document("0" * 64, source, "x/y", (Page(1, "read"),), len(data))


@pytest.mark.parametrize(
    ("declared", "data", "name"),
    [
        ("image/png", b"\x89PNG\r\n\x1a\n", "a"),
        ("png", b"\x89PNG\r\n\x1a\n", "a.txt"),
        ("image", b"\xff\xd8\xff\xe0", "a"),
        ("html", b"<html>", "a"),
        ("dwg", bytes(range(256)), "a.dwg"),
        ("text/csv", b"a,b", "a.csv"),
    ],
)
def test_a_loader_is_found_by_media_type_kind_family_or_suffix(
    declare: Callable[[str, object], None], declared: str, data: bytes, name: str
) -> None:
    """Whoever declares a loader for a kind of file gets its files, and no other code has to know."""
    declare(declared, document)
    assert load(data, name=name).text == "read"
    assert load(b"plain text", name="a.txt").text == "plain text"


def test_what_breaks_in_a_loader_is_about_the_document(declare: Callable[[str, object], None]) -> None:
    """A bug is a document error without the document's text; a missing extra and a wrong type are said as such."""

    def buggy(data: bytes, source: str) -> Document:
        raise KeyError("secret text of the document")

    def bare(data: bytes, source: str) -> Document:
        raise MissingExtra("rtf reading", "rtf")

    for name, loader in (("html", buggy), ("rtf", bare), ("xml", lambda data, source: "text")):
        declare(name, loader)
    with pytest.raises(UnreadableDocument, match="KeyError in the loader 'html'") as caught:
        load(b"<html>", name="a")
    assert "secret" not in str(caught.value)
    with pytest.raises(MissingExtra):
        load(b"{\\rtf1}", name="a")
    with pytest.raises(ConfigurationError, match="returned str"):
        load(b"<?xml?>", name="a")


def test_the_built_in_loaders_need_no_installed_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source tree that was never installed reads text and PDF all the same."""
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [])
    plugins.declared.cache_clear()
    try:
        assert load(b"plain", name="a.txt").text == "plain"
        assert set(plugins.declared("extractor.loaders")) == {"text", "pdf"}
    finally:
        plugins.declared.cache_clear()


def test_reading_text_imports_no_pdf_library() -> None:
    """Loaders and detectors are imported when a document needs them."""
    code = (
        "import sys; from extractor.documents import load; load(b'hello', name='a.txt')\n"
        "print([m for m in ('pypdfium2', 'charset_normalizer', 'extractor.documents.pdf') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("data", [b"", b"  \n\t \n", b"\0\0\0", b"\f\f"])
def test_empty_files_are_a_failure_before_any_ask(data: bytes) -> None:
    """A file without text is an error of its own kind."""
    with pytest.raises(EmptyDocument):
        load(data, name="a.txt")


def test_a_documents_repr_does_not_hold_its_text() -> None:
    """What ends up in logs and tracebacks names the document and keeps its text out."""
    assert "secret" not in repr(load(b"secret", name="a.txt"))


def test_a_page_that_could_not_be_read_leaves_a_mark() -> None:
    """The model sees the gap, and the document knows that it is incomplete."""
    pages = (Page(1, "one"), Page(2, "", status="failed", reason="broken"), Page(3, "three"))
    read = Document("0" * 64, "a.pdf", "application/pdf", pages, 9)
    assert not read.is_complete
    assert [page.number for page in read.failed_pages] == [2]
    assert read.text == "--- page 1 ---\none\n\n--- page 2 ---\n(this page could not be read)\n\n--- page 3 ---\nthree"
