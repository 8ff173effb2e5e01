import os
from pathlib import Path

import msgspec
import pytest

from carryscope.core.errors import CallError, WorkError
from carryscope.core.storage import read_json, write_bytes, write_json


class Record(msgspec.Struct, frozen=True):
    number: int


def test_a_record_comes_back_by_type(tmp_path):
    write_json(tmp_path / "deep" / "record.json", Record(7))
    assert read_json(tmp_path / "deep" / "record.json", Record) == Record(7)


@pytest.mark.parametrize("content", [b"", b"{", b'{"number": "seven"}', b"\xff\xfe", b"[]"])
def test_what_is_not_such_a_record_is_refused(tmp_path, content):
    (tmp_path / "record.json").write_bytes(content)
    with pytest.raises(CallError, match="is damaged or not a carryscope file"):
        read_json(tmp_path / "record.json", Record)


def test_a_missing_file_is_one_line(tmp_path):
    with pytest.raises(CallError, match=r"Cannot read .*record.json: No such file"):
        read_json(tmp_path / "record.json", Record)


def test_a_write_that_fails_leaves_the_old_file_and_no_rubbish(tmp_path, monkeypatch):
    write_bytes(tmp_path / "file", b"old")

    def no_space(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(WorkError, match="No space left on device. What was there before is intact"):
        write_bytes(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_keeps_its_mode_and_a_new_one_gets_the_usual(tmp_path):
    (tmp_path / "secret").write_bytes(b"old")
    (tmp_path / "secret").chmod(0o600)
    (tmp_path / "usual").touch()
    for name in ("secret", "new"):
        write_bytes(tmp_path / name, b"new")
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes["secret"] == 0o600
    assert modes["new"] == modes["usual"]


def test_a_link_a_pipe_or_a_device_is_not_replaced(tmp_path):
    (tmp_path / "mine").write_bytes(b"precious")
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "link", tmp_path / "pipe", Path(os.devnull)):
        with pytest.raises(CallError, match="it is (a directory|not an ordinary file)"):
            write_bytes(path, b"new")
    assert (tmp_path / "mine").read_bytes() == b"precious"
    assert (tmp_path / "link").is_symlink()
