"""Plain text, in whatever encoding."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extractor.documents import load
from extractor.errors import DocumentError, UnreadableDocument

PRINTABLE = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Zl", "Zp"), exclude_characters="\ufeff"), max_size=80
)
WESTERN = st.lists(
    st.sampled_from(["Rechnung", "für", "Übersee", "Größe", "Müller", "café", "reçu", "à", "régler", "España", "São"]),
    min_size=1,
    max_size=12,
).map(" ".join)


@given(PRINTABLE, st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]))
@settings(max_examples=100, deadline=None)
def test_unicode_text_comes_back(text: str, encoding: str) -> None:
    """Whatever is written in UTF-8, or in a marked UTF-16 or UTF-32, is read as it was written."""
    assert load(f"a{text}b".encode(encoding), name="a.txt").text == f"a{text}b"


@given(WESTERN, st.sampled_from(["cp1252", "latin-1", "utf-16-le", "utf-16-be"]))
@settings(max_examples=100, deadline=None)
def test_unmarked_western_text_comes_back(text: str, encoding: str) -> None:
    """Western words are read right in the encodings that have no mark, however short they are."""
    assert load(f"{text} 12".encode(encoding), name="a.txt").text == f"{text} 12"


RUSSIAN = "Счёт на оплату № 117 от 5 марта 2024 г. Поставщик: ООО «Ромашка», Москва. Итого: 12 340,50 руб. "
POLISH = "Sprzedawca: Zakład Usług Żółw, Łódź. Należność do zapłaty: 1 234,50 zł, płatność przelewem. "
GREEK = "Τιμολόγιο αρ. 117. Σύνολο προς πληρωμή: 1.234,50. Αθήνα, 5 Μαρτίου 2024. "
TURKISH = "Satıcı: Güneş Gıda A.Ş., İstanbul. Ödenecek toplam: 1.234,50 TL. Teşekkür ederiz, iyi günler. "
JAPANESE = "請求書番号 117 株式会社サンプル 御中 合計金額 12,340円 お支払期限 2024年3月5日 "
CHINESE = "发票号码 117 销售方 示例有限公司 合计金额 12340.50 元 付款期限 2024年3月5日 "


@pytest.mark.parametrize(
    ("text", "encodings"),
    [
        ("Rechnung für Übersee: 1.234,56 €, „zahlbar“ bis März\nGrüße aus Köln", "cp1252 iso8859-15 utf-16-le utf-8"),
        (RUSSIAN * 3, "cp1251 koi8-r utf-16-le utf-16-be"),
        (POLISH * 3, "cp1250 utf-16-le"),
        (GREEK * 3, "cp1253 utf-16-be"),
        (TURKISH * 3, "cp1254 utf-16-le"),
        (JAPANESE * 3, "shift_jis euc_jp iso2022_jp utf-16-le utf-16-be"),
        (CHINESE * 3, "gb18030 utf-16-le"),
    ],
)
def test_encodings_are_detected_by_what_reads_well(text: str, encodings: str) -> None:
    """Documents without a mark are read in the encoding that they are written in, and the page says which it was."""
    for encoding in encodings.split():
        document = load(text.encode(encoding, "ignore"), name="a.txt")
        assert document.text == text.encode(encoding, "ignore").decode(encoding)
        assert document.pages[0].how.startswith("text, ")


def test_a_few_bad_bytes_do_not_change_the_encoding_of_all() -> None:
    """UTF-8 that was cut or pasted together badly is still UTF-8."""
    text = "Grüße aus Köln " * 20
    assert load(text.encode() + b"\xff" + text.encode() + "ü".encode()[:1], name="a.txt").text == (
        f"{text}\ufffd{text}\ufffd"
    )


def test_bytes_in_no_encoding_are_unreadable() -> None:
    """Nothing is guessed where nothing fits."""
    noise = bytes(random.Random(0).choices(range(128, 256), k=600))
    with pytest.raises(
        UnreadableDocument, match=r"^a\.txt: its bytes are text in no known encoding; save it as UTF-8$"
    ):
        load(noise, name="a.txt")


def test_control_characters_and_nul_are_stripped_and_line_ends_are_one_kind() -> None:
    """NUL bytes and control characters, which databases refuse, never reach the model; tabs do."""
    assert load(b"total\x00:\t12\x07.00\r\nnext\rline", name="a.txt").text == "total:\t12.00\nnext\nline"


def test_a_form_feed_begins_a_page() -> None:
    """Printed text keeps its pages, an empty one too, and the model sees where each begins."""
    document = load(b"one\f\f\nthree\f", name="a.txt")
    assert [(page.number, page.text) for page in document.pages] == [(1, "one"), (2, ""), (3, "three")]
    assert document.text.endswith("--- page 3 ---\nthree")


@given(st.binary(max_size=400), st.sampled_from([b"", b"%PDF-1.7\n", b"PK\x03\x04", b"\xff\xfe", b"\xd0\xcf\x11\xe0"]))
@settings(max_examples=150, deadline=None)
def test_random_bytes_never_raise_anything_but_a_document_error(data: bytes, start: bytes) -> None:
    """Hostile bytes are a document error that names the file, or a document without control characters."""
    for name in ("a.txt", "a.pdf", "a"):
        try:
            text = load(start + data, name=name).text
        except DocumentError as error:
            assert str(error).startswith(f"{name}: ")  # noqa: PT017 - either way is right
        else:
            assert not any(character < " " and character not in "\t\n" for character in text)
            assert text.encode()
