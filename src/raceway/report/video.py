"""Pictures as an .mp4 file."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

import numpy as np

from raceway.errors import MissingPackageError, RunFolderError, SettingError, VideoError
from raceway.files import opened_folder
from raceway.interrupts import uninterrupted

_MOST_SAID = 500


def write_video(path: Path | str, frames: Iterable[np.ndarray], fps: float) -> Path:
    """Writes RGB pictures [height, width, 3] of bytes, all of one size, as H.264, which plays everywhere.

    The file is there when it is whole: if anything goes wrong, or Ctrl-C is pressed, there is none, and no ffmpeg is
    left. An odd width or height loses its last column or row: the format needs even ones.
    """
    path = Path(path)
    check_path(path)
    program = _ffmpeg()
    rest = iter(frames)
    first = next(rest, None)
    if first is None:
        raise SettingError(f"{path.name}: there are no pictures to make a video of.")
    with _place(path) as folder, _aside(path, folder) as file:
        _encode(program, file, path, _checked(itertools.chain([first], rest)), first.shape, fps)
    return path


def check_path(path: Path) -> None:
    """Refuses a path that no video can be written to, before anything is drawn."""
    if path.suffix.lower() != ".mp4":
        raise SettingError(f"{path.name!r}: videos are .mp4 files. Use {path.with_suffix('.mp4').name!r}.")
    with _writing(path):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))


@contextlib.contextmanager
def _place(path: Path) -> Iterator[int]:
    """The opened folder that a video goes to, made if it is not there. In a run's folder it must not be a link."""
    with contextlib.ExitStack() as opened:
        with _writing(path):
            if os.path.lexists(path.parent.parent / "config.json"):
                folder = opened.enter_context(opened_folder(path.parent, create=True))
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
                opened.callback(os.close, folder)
        yield folder


@contextlib.contextmanager
def _aside(path: Path, folder: int) -> Iterator[int]:
    """A new file, open, that gets the name of `path` when all has gone well and is deleted otherwise."""
    name = f".{uuid.uuid4().hex}.part.mp4"
    try:
        with _writing(path):
            file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666, dir_fd=folder)
        try:
            yield file
        finally:
            os.close(file)
        with _writing(path):
            os.replace(name, path.name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        with uninterrupted(), contextlib.suppress(OSError):
            os.unlink(name, dir_fd=folder)


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except RunFolderError:  # of a link, which says what to do
        raise
    except OSError as error:
        raise VideoError(f"{path} cannot be written: {error.strerror}. Name another place: --video FILE.mp4.") from None


def _encode(
    program: str, file: int, path: Path, frames: Iterator[np.ndarray], shape: tuple[int, ...], fps: float
) -> None:
    height, width = (size - size % 2 for size in shape[:2])
    raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", f"{fps:g}", "-i", "-"]
    encoded = ["-an", "-c:v", "libx264", "-crf", "20", "-pix_fmt", "yuv420p", "-movflags", "+faststart"]
    # By its descriptor, which no link can stand in for.
    command = [program, "-y", "-v", "error", *raw, *encoded, "-f", "mp4", f"/proc/self/fd/{file}"]
    ffmpeg: subprocess.Popen[bytes] | None = None
    # A file, not a pipe: nobody would read that while ffmpeg is written to, and when it is full both would wait.
    with tempfile.TemporaryFile() as said:
        try:
            with _writing(path), uninterrupted():  # or it could be started and nobody know of it
                # Not by imageio-ffmpeg, which forks in a way that JAX, rightly, warns of. Out of our process group, so
                # that Ctrl-C is ours to deal with.
                ffmpeg = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=said, pass_fds=[file], process_group=0)
            count = _write(ffmpeg, frames, height, width)
            ffmpeg.wait()
        except BaseException:
            if ffmpeg is not None:
                _end(ffmpeg)
            raise
        if ffmpeg.returncode:
            raise VideoError(f"{path} is not written: {_why(ffmpeg.returncode, said, count)}")


def _write(ffmpeg: subprocess.Popen[bytes], frames: Iterator[np.ndarray], height: int, width: int) -> int:
    """How many pictures it took: all of them, unless it has ended before."""
    assert ffmpeg.stdin is not None
    count = 0
    for frame in frames:
        try:
            ffmpeg.stdin.write(np.ascontiguousarray(frame[:height, :width]).data)
        except BrokenPipeError:  # why, its exit code and its words tell
            break
        count += 1
    with contextlib.suppress(BrokenPipeError):
        ffmpeg.stdin.close()
    return count


def _end(ffmpeg: subprocess.Popen[bytes]) -> None:
    with uninterrupted():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(ffmpeg.pid, signal.SIGKILL)  # a wrapper's own processes too
        ffmpeg.wait()
        assert ffmpeg.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # of what was not written yet
            ffmpeg.stdin.close()


def _why(code: int, said: IO[bytes], count: int) -> str:
    """Why ffmpeg failed, in one line."""
    if code < 0:
        known = {each.value: each.name for each in signal.Signals}
        return f"ffmpeg was killed by {known.get(-code, f'signal {-code}')} after {count} pictures."
    said.seek(0)
    words = " ".join(said.read(_MOST_SAID).decode(errors="replace").split())
    return f"ffmpeg failed with exit code {code}: {words or 'it does not say why'}"


def _checked(frames: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    shape: tuple[int, ...] | None = None
    for index, frame in enumerate(frames):
        if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3:
            raise SettingError(
                f"picture {index} is {frame.dtype} of shape {frame.shape}, not bytes of (height, width, 3)."
            )
        if frame.shape != (shape := shape or frame.shape):
            raise SettingError(f"picture {index} has shape {frame.shape}, the first one {shape}: they must be equal.")
        yield frame


def _ffmpeg() -> str:
    try:
        import imageio_ffmpeg
    except ImportError:
        raise MissingPackageError(
            "Videos need ffmpeg, which comes with imageio-ffmpeg. pip install 'raceway[render]'"
        ) from None
    return str(imageio_ffmpeg.get_ffmpeg_exe())
