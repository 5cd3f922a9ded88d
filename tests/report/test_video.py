"""Pictures as files and in windows."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest

from raceway.errors import MissingPackageError, UserError
from raceway.report.video import write_video
from raceway.report.window import show
from tests.envs.python.watching import children, command_of, wait_until


def frames(count: int, height: int = 64, width: int = 96) -> Iterator[np.ndarray]:
    """Grey pictures that brighten."""
    for index in range(count):
        yield np.full((height, width, 3), 40 + 4 * index, np.uint8)


def read(path: Path) -> tuple[str, list[np.ndarray]]:
    """What ffmpeg says of a video, and its pictures."""
    program = imageio_ffmpeg.get_ffmpeg_exe()
    done = subprocess.run([program, "-i", path, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"], capture_output=True)
    facts = done.stderr.decode()
    width, height = map(int, re.findall(r"Video:.* (\d+)x(\d+)", facts)[0])
    return facts, list(np.frombuffer(done.stdout, np.uint8).reshape(-1, height, width, 3))


def ffmpegs() -> list[int]:
    """The processes that this one has started and that are still there."""
    return [child for child in children(os.getpid()) if "rawvideo" in command_of(child)]


def wrapped(monkeypatch: pytest.MonkeyPatch, place: Path, script: str) -> None:
    """Puts a script in ffmpeg's place."""
    program = place / "ffmpeg.sh"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", str(program))


def test_a_video_has_the_pictures(tmp_path: Path) -> None:
    path = write_video(tmp_path / "deep" / "play.mp4", frames(20), fps=25)
    facts, seen = read(path)
    assert (seen[0].shape, len(seen)) == ((64, 96, 3), 20)
    assert "h264" in facts
    assert "25 fps" in facts
    for given, got in zip(frames(20), seen, strict=True):
        assert np.abs(given.astype(int) - got).max() < 8
    assert [file.name for file in path.parent.iterdir()] == ["play.mp4"]


def test_odd_sizes_lose_a_row_and_a_column(tmp_path: Path) -> None:
    _, seen = read(write_video(tmp_path / "odd.mp4", frames(3, 65, 97), fps=30))
    assert seen[0].shape == (64, 96, 3)


def test_a_picture_that_does_not_fit_leaves_no_file(tmp_path: Path) -> None:
    def uneven() -> Iterator[np.ndarray]:
        yield from frames(2)
        yield np.zeros((10, 10, 3), np.uint8)

    with pytest.raises(ValueError, match=r"picture 2 has shape \(10, 10, 3\), the first one \(64, 96, 3\)"):
        write_video(tmp_path / "a.mp4", uneven(), fps=30)
    with pytest.raises(ValueError, match="picture 0 is float64"):
        write_video(tmp_path / "a.mp4", [np.zeros((10, 10, 3))], fps=30)
    with pytest.raises(ValueError, match="no pictures"):
        write_video(tmp_path / "a.mp4", [], fps=30)
    with pytest.raises(ValueError, match=r"Use 'a\.mp4'"):
        write_video(tmp_path / "a.gif", frames(1), fps=30)
    assert list(tmp_path.iterdir()) == []


def test_ffmpeg_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"a\.mp4 is not written: ffmpeg failed with exit code \d+: .+"):
        write_video(tmp_path / "a.mp4", frames(2), fps=-1)
    assert list(tmp_path.iterdir()) == []


def test_ffmpeg_that_is_killed_is_told_in_one_line(tmp_path: Path) -> None:
    def killing() -> Iterator[np.ndarray]:
        for index, frame in enumerate(frames(2000)):
            if index == 5:
                for ffmpeg in ffmpegs():
                    os.kill(ffmpeg, signal.SIGKILL)
            yield frame

    with pytest.raises(
        UserError, match=r"^\S*/a\.mp4 is not written: ffmpeg was killed by SIGKILL after \d+ pictures\.$"
    ):
        write_video(tmp_path / "a.mp4", killing(), fps=30)
    assert list(tmp_path.iterdir()) == []


def test_words_of_ffmpeg_that_fill_a_pipe_do_not_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrapped(monkeypatch, tmp_path, "head -c 300000 /dev/zero | tr '\\0' 'x' >&2; cat > /dev/null; exit 3")
    with pytest.raises(UserError, match=r"ffmpeg failed with exit code 3: x+$") as raised:
        write_video(tmp_path / "out/a.mp4", frames(20), fps=30)
    assert len(str(raised.value)) < 1000


@pytest.mark.parametrize("when", ["drawing", "encoding"])
def test_an_exception_leaves_no_file_and_no_process(when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a signal raises one, wherever it comes."""

    def interrupted() -> Iterator[np.ndarray]:
        yield from frames(3)
        if when == "drawing":
            raise KeyboardInterrupt

    if when == "encoding":
        wrapped(monkeypatch, tmp_path, f'{imageio_ffmpeg.get_ffmpeg_exe()} "$@"; touch {tmp_path}/done; sleep 100')
        done = tmp_path / "done"

        def interrupt() -> None:
            wait_until(done.exists, 60)
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        write_video(tmp_path / "out/a.mp4", interrupted(), fps=30)
    assert list((tmp_path / "out").iterdir()) == []
    assert ffmpegs() == []


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"file/a\.mp4 cannot be written: (Not a directory|File exists)\. Name another"):
        write_video(tmp_path / "file/a.mp4", frames(3), fps=30)
    (tmp_path / "a.mp4").mkdir()
    with pytest.raises(UserError, match=r"a\.mp4 cannot be written: Is a directory"):
        write_video(tmp_path / "a.mp4", frames(3), fps=30)


def test_errors_of_those_who_draw_are_their_own(tmp_path: Path) -> None:
    def failing() -> Iterator[np.ndarray]:
        yield from frames(3)
        raise FileNotFoundError("their texture")

    with pytest.raises(FileNotFoundError, match="their texture"):
        write_video(tmp_path / "a.mp4", failing(), fps=30)
    assert list(tmp_path.iterdir()) == []


def test_without_ffmpeg_the_command_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'raceway\[render\]'"):
        write_video(tmp_path / "a.mp4", frames(1), fps=30)


def test_beside_jax_nothing_is_forked(tmp_path: Path) -> None:
    script = f"""if True:
        import warnings; warnings.simplefilter("error")
        import jax; jax.numpy.zeros(1).block_until_ready()
        from tests.report.test_video import frames, write_video
        write_video({str(tmp_path / "a.mp4")!r}, frames(3), 30)
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_window_shows_all_and_can_be_closed() -> None:
    import pygame

    assert show(frames(5), 1000, "test") is True  # on a dummy screen, by conftest

    def closing() -> Iterator[np.ndarray]:
        for index, frame in enumerate(frames(50)):
            if index == 3:
                pygame.event.post(pygame.event.Event(pygame.QUIT))
            assert index <= 4, "the window goes on after it was closed"
            yield frame

    assert show(closing(), 1000, "test") is False
