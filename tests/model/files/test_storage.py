"""Bytes on disk: old content survives a full disk, what is read is bounded, JSON is strict."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from gmeql.model.files import storage
from gmeql.model.files.storage import NewerFormatError, StorageError, check_version, parse_json, write_atomic


class TestWriting:
    def test_old_content_stays_when_writing_fails(self, tmp_path: Path, monkeypatch) -> None:
        path = tmp_path / "file"
        write_atomic(path, b"old")

        def full(descriptor: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(storage.os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            write_atomic(path, b"new")
        assert path.read_bytes() == b"old"
        assert os.listdir(tmp_path) == ["file"]

    def test_the_file_is_flushed_before_it_is_renamed(self, tmp_path: Path, monkeypatch) -> None:
        order = []
        monkeypatch.setattr(storage.os, "fsync", lambda fd: order.append("fsync"))
        monkeypatch.setattr(storage.os, "replace", lambda a, b: order.append("replace"))
        write_atomic(tmp_path / "file", b"x")
        assert order == ["fsync", "replace", "fsync"]

    def test_only_regular_files_within_the_limit_are_read(self, tmp_path: Path) -> None:
        (tmp_path / "big").write_bytes(b"x" * 11)
        with pytest.raises(StorageError, match="11 bytes"):
            storage.read_limited(tmp_path / "big", 10)
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(StorageError, match="regular"):
            storage.read_limited(tmp_path / "pipe", 10)
        with pytest.raises(StorageError, match="No such file"):
            storage.read_limited(tmp_path / "none", 10)


class TestJson:
    @pytest.mark.parametrize(
        "text",
        [b"", b"{", b"NaN", b"[Infinity]", b"1e999", b'{"a": 1, "a": 2}', b"\xff", b"[" * 100_000, b"9" * 10_000],
        ids=["empty", "open", "nan", "infinity", "overflow", "twice", "bytes", "deep", "long number"],
    )
    def test_what_is_not_strict_is_refused(self, text: bytes) -> None:
        with pytest.raises(StorageError, match="somewhere"):
            parse_json(text, "somewhere")

    def test_plain_values_come_back(self) -> None:
        assert parse_json(b'{"a": [1, 2.5, null, "\xc3\xa9"]}', "somewhere") == {"a": [1, 2.5, None, "é"]}

    @pytest.mark.parametrize("header", [None, {}, {"format": "other", "version": 1}, {"format": "f", "version": True}])
    def test_a_header_of_another_format_is_refused(self, header) -> None:
        with pytest.raises(StorageError, match="somewhere"):
            check_version(header, "somewhere", "f", 1)

    def test_a_newer_version_is_an_error_of_its_own(self) -> None:
        check_version({"format": "f", "version": 1}, "somewhere", "f", 1)
        with pytest.raises(NewerFormatError, match="upgrade"):
            check_version({"format": "f", "version": 2}, "somewhere", "f", 1)
