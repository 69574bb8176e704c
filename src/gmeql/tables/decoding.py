"""Bytes of a text table to text: the encoding is given, marked, or found."""

from __future__ import annotations

from gmeql.tables.cells import Note, TableError, show


def decode(data: bytes, source: str, encoding: str | None = None) -> tuple[str, list[Note]]:
    """Text of the file; the encoding from its byte-order mark, else UTF-8, else what the byte pattern says."""
    if encoding is not None:
        try:
            return _no_nul(data.decode(encoding).removeprefix("\ufeff"), source), []
        except LookupError:
            raise TableError(
                source, f"unknown encoding {show(encoding)}", mend="try utf-8, utf-16 or latin-1"
            ) from None
        except UnicodeError as error:
            raise TableError(
                source,
                f"is not {encoding} text ({error.reason if hasattr(error, 'reason') else error})",
                mend="leave the encoding out, so that it is found",
            ) from None
    for mark, name in (
        (b"\xef\xbb\xbf", "utf-8"),
        (b"\xff\xfe\x00\x00", "utf-32"),
        (b"\x00\x00\xfe\xff", "utf-32"),
        (b"\xff\xfe", "utf-16"),
        (b"\xfe\xff", "utf-16"),
    ):
        if data.startswith(mark):
            return _decode_as(data, "utf-8-sig" if name == "utf-8" else name, source), (
                [] if name == "utf-8" else [Note("encoding", f"read as {name.upper()}")]
            )
    if guess := _utf16_without_mark(data):
        return _decode_as(data, guess, source), [Note("encoding", f"read as {guess.upper()} without a byte-order mark")]
    try:
        return _no_nul(data.decode("utf-8"), source), []
    except UnicodeDecodeError:
        pass
    try:
        text, name = data.decode("cp1252"), "Windows-1252"
    except UnicodeDecodeError:
        text, name = data.decode("latin-1"), "Latin-1"
    return _no_nul(text, source), [Note("encoding", f"not UTF-8: read as {name}")]


def _decode_as(data: bytes, encoding: str, source: str) -> str:
    try:
        return _no_nul(data.decode(encoding), source)
    except UnicodeDecodeError as error:
        place = error.start + len(data) - len(error.object)  # Python counts from behind the byte-order mark
        row = data[:place].count(b"\n") + 1
        raise TableError(
            source,
            f"the text is damaged: its mark says {encoding}, byte {place} is not",
            row=row,
            mend="save it again as UTF-8",
        ) from None


def _utf16_without_mark(data: bytes) -> str | None:
    head = data[:4096]
    if len(head) < 4:
        return None
    even, odd = head[0::2].count(0) / len(head[0::2]), head[1::2].count(0) / len(head[1::2])
    if odd > 0.6 and even < 0.1:
        return "utf-16-le"
    return "utf-16-be" if even > 0.6 and odd < 0.1 else None


def _no_nul(text: str, source: str) -> str:
    position = text.find("\0")
    if position < 0:
        return text
    raise TableError(
        source,
        "a NUL byte stands there: the file is damaged or not a text table",
        row=text.count("\n", 0, position) + 1,
        mend="save it again as CSV, or remove the NUL bytes",
    )
