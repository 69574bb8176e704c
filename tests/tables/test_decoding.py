"""Encodings: given, marked, or found; what cannot be decoded is one line with its row."""

from __future__ import annotations

import pytest

from gmeql.tables.cells import TableError
from gmeql.tables.decoding import decode

TEXT = "é,b\n1,2\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252", "utf-16-le", "utf-16-be"])
def test_the_encoding_is_found(encoding):
    text = TEXT if "utf-16-" not in encoding else "temperature,b\n1,2\n"
    assert decode(text.encode(encoding), "t.csv")[0] == text


@pytest.mark.parametrize(
    ("encoding", "noted"), [("utf-8", False), ("utf-8-sig", False), ("utf-16", True), ("cp1252", True)]
)
def test_all_but_utf_8_is_noted(encoding, noted):
    assert [note.code for note in decode(TEXT.encode(encoding), "t.csv")[1]] == ["encoding"] * noted


def test_a_given_encoding_is_taken_or_refused():
    assert decode(TEXT.encode("cp437"), "t.csv", "cp437") == (TEXT, [])
    with pytest.raises(TableError, match="unknown encoding 'klingon'"):
        decode(b"a", "t.csv", "klingon")
    with pytest.raises(TableError, match="is not utf-8 text"):
        decode(b"\xff", "t.csv", "utf-8")


def test_damage_is_named_with_its_row():
    with pytest.raises(TableError, match="NUL byte") as caught:
        decode(b"a,b\n1,2\n3,\x004\n", "t.csv")
    assert caught.value.row == 3
    with pytest.raises(TableError, match="the text is damaged") as caught:
        decode(b"\xef\xbb\xbfa\n1\n\xff\n", "t.csv")
    assert caught.value.row == 3
