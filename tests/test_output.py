"""Output files are written whole, through links and with the modes people expect."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from plait.errors import PlaitError
from plait.tools.output import write_text

PROGRAM = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = lazy.exp %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "program.mlir"
    path.write_text(PROGRAM)
    return path


def plait_opt(*args: object, shell: str = "", limit: int | None = None) -> tuple[int, str, str]:
    """Status, output and messages of the tool in a process of its own; ``limit`` is the largest
    file in bytes that it may write, which fails as a full disk does."""
    tool = Path(sys.executable).parent / "plait-opt"
    words = " ".join(map(str, [tool, *args, shell]))

    def limited() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = subprocess.run(
        words, shell=True, capture_output=True, text=True, preexec_fn=limited, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_a_link_stays_and_its_target_is_written(tmp_path: Path) -> None:
    target, link, chain = tmp_path / "target", tmp_path / "link", tmp_path / "chain"
    link.symlink_to("target")
    chain.symlink_to(link)
    for text in ("new file", "old file"):
        write_text(chain, text)
        assert chain.is_symlink() and link.is_symlink() and not target.is_symlink()
        assert target.read_text() == text
    assert sorted(p.name for p in tmp_path.iterdir()) == ["chain", "link", "target"]


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_mode_of_the_umask(mask: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        write_text(tmp_path / "new", "text")
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o666 & ~mask


def test_an_old_file_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "old"
    path.write_text("before")
    path.chmod(0o750)
    write_text(path, "after")
    assert path.read_text() == "after" and path.stat().st_mode & 0o777 == 0o750


def test_a_pipe_is_written_into(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    write_text(path, "through the pipe")
    assert os.read(reader, 100) == b"through the pipe" and path.is_fifo()
    os.close(reader)


@pytest.mark.parametrize("name", ["folder", "missing/file", "file/below", "x" * 300])
def test_what_cannot_be_written_is_one_line(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("before")
    with pytest.raises(PlaitError, match="cannot write: ") as caught:
        write_text(tmp_path / name, "text")
    assert "\n" not in str(caught.value)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder"]


def test_standard_output_by_its_name(file: Path, tmp_path: Path) -> None:
    status, out, err = plait_opt(file, "-o", "/dev/stdout", shell="| cat")
    assert (status, err) == (0, "") and "lazy.exp" in out
    log = tmp_path / "log"
    log.write_text("first\n")
    assert plait_opt(file, "-o", "/dev/stdout", shell=f">> {log}")[0] == 0
    assert log.read_text().startswith("first\n") and "lazy.exp" in log.read_text()


@pytest.mark.parametrize("shell", [">&-", "| true"])
def test_output_that_nobody_reads(shell: str, file: Path) -> None:
    status, _, err = plait_opt(file, shell=shell)
    assert err == ("" if shell == "| true" else "error: output: standard output is closed\n")
    assert status == (0 if shell == "| true" else 1)


def test_a_closed_output_is_not_the_next_file(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.mlir"
    assert plait_opt(file, "-o", out, shell=">&- 2>&-") == (0, "", "")
    assert "lazy.exp" in out.read_text()


def test_a_full_disk_is_one_line(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.mlir"
    out.write_text("before")
    status, _, err = plait_opt(file, "-o", out, limit=16)
    assert status == 1 and err.count("\n") == 1 and f"{out}: cannot write: file too" in err
    assert out.read_text() == "before"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.mlir", "program.mlir"]
    status, _, err = plait_opt(file, shell=f"> {tmp_path / 'stdout'}", limit=16)
    assert (status, err) == (1, "error: output: file too large\n")
