"""Pictures as an .mp4 file."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from raceway.errors import MissingPackageError, SettingError


def write_video(path: Path | str, frames: Iterable[np.ndarray], fps: float) -> Path:
    """Writes RGB pictures [height, width, 3] of bytes, all of one size, as H.264, which plays everywhere.

    The file is there when it is whole. An odd width or height loses its last column or row: the format needs even ones.
    """
    path = Path(path)
    if path.suffix.lower() != ".mp4":
        raise SettingError(f"{path.name!r}: videos are .mp4 files. Use {path.with_suffix('.mp4').name!r}.")
    program = _ffmpeg()
    rest = iter(frames)
    first = next(rest, None)
    if first is None:
        raise SettingError(f"{path.name}: there are no pictures to make a video of.")
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.stem}.part.mp4")
    try:
        _encode(program, aside, _checked(itertools.chain([first], rest)), first.shape, fps)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
    return path


def _encode(program: str, path: Path, frames: Iterable[np.ndarray], shape: tuple[int, ...], fps: float) -> None:
    height, width = (size - size % 2 for size in shape[:2])
    raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", f"{fps:g}", "-i", "-"]
    encoded = ["-an", "-c:v", "libx264", "-crf", "20", "-pix_fmt", "yuv420p", "-movflags", "+faststart"]
    # Not by imageio-ffmpeg, which forks in a way that JAX, rightly, warns of. Out of our process group, so that Ctrl-C
    # is ours to deal with.
    ffmpeg = subprocess.Popen(
        [program, "-y", "-v", "error", *raw, *encoded, str(path)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        process_group=0,
    )
    assert ffmpeg.stdin is not None
    try:
        for frame in frames:
            ffmpeg.stdin.write(np.ascontiguousarray(frame[:height, :width]).data)
    except BrokenPipeError:
        pass  # it has ended, and says why
    except BaseException:
        ffmpeg.kill()
        ffmpeg.communicate()
        raise
    _, said = ffmpeg.communicate()
    if ffmpeg.returncode:
        raise OSError(f"{path.name}: ffmpeg could not write it: {said.decode(errors='replace').strip()}")


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
