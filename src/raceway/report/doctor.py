"""What this machine has for training, what is missing, and the command that puts it right."""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from raceway._core import usable_cpus
from raceway.envs.compiler import find_compiler
from raceway.errors import NativeEnvError
from raceway.memory import memory_bytes
from raceway.report.system import cpu_name, versions
from raceway.report.window import has_screen

_GIB = 1 << 30
_CUDA = "pip install 'raceway[cuda]'"
_RENDER = "pip install 'raceway[render]'"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    name: str
    value: str
    fix: str = ""
    """The command, or what else to do, if something could be better."""
    is_bad: bool = False
    """Whether training cannot work so."""


def examine(runs: str | os.PathLike[str] = "runs") -> list[Finding]:
    """Looks at everything. Takes some seconds: JAX is started."""
    return [
        *_packages(),
        *_machine(),
        _accelerator(),
        _screen(),
        _drawing(),
        _video(),
        _compiler(),
        _folder(Path(runs)),
    ]


def report(findings: Sequence[Finding]) -> str:
    """The findings as text for a terminal, what to do below what it is for."""
    width = max(len(finding.name) for finding in findings) + 2
    lines = []
    for finding in findings:
        mark = "✗" if finding.is_bad else "!" if finding.fix else "✓"
        lines.append(f"{mark} {finding.name:<{width}}{finding.value}")
        if finding.fix:
            lines.append(f"  {'':<{width}}to change that: {finding.fix}")
    count = sum(finding.is_bad for finding in findings)
    advice = sum(bool(finding.fix) and not finding.is_bad for finding in findings)
    if count:
        end = f"{count} thing{'s' * (count > 1)} must be put right before training works (✗)."
    elif advice:
        end = f"Training works. {advice} thing{'s' * (advice > 1)} could be better (!)."
    else:
        end = "All is well."
    return "\n".join([*lines, "", end])


def _packages() -> list[Finding]:
    return [
        Finding(name, version)
        if version
        else Finding(name, "not installed", "pip install --upgrade raceway", is_bad=True)
        for name, version in versions().items()
    ]


def _machine() -> list[Finding]:
    total, free = memory_bytes()
    return [
        Finding("CPUs", f"{usable_cpus()} usable of {os.cpu_count()}, {cpu_name()}"),
        Finding("memory", f"{total / _GIB:.1f} GiB, {free / _GIB:.1f} GiB free" if total else "unknown"),
    ]


def _accelerator() -> Finding:
    try:
        import jax

        devices = [(device.platform, device.device_kind) for device in jax.devices()]
    except Exception as error:  # whatever a plugin of JAX's raises
        return Finding("accelerator", f"JAX cannot start: {str(error).splitlines()[0]}", _CUDA, is_bad=True)
    return accelerator_finding(devices, nvidia_gpus(), has_cuda_plugin())


def accelerator_finding(devices: Sequence[tuple[str, str]], gpus: Sequence[str], has_plugin: bool) -> Finding:
    """What JAX computes on, and how it would get to use a GPU that it does not see."""
    seen = [kind for platform, kind in devices if platform != "cpu"]
    if seen:
        return Finding("accelerator", f"JAX sees {', '.join(seen)}")
    if not gpus:
        return Finding("accelerator", "none; JAX computes on the CPU")
    there = f"{', '.join(gpus)} is there, but JAX does not see it"
    if not has_plugin:
        return Finding("accelerator", there, _CUDA)
    why = "python -c \"import jax; jax.devices('cuda')\" says why; mostly the driver is too old (nvidia-smi shows it)"
    return Finding("accelerator", f"{there}, though its CUDA plugin is installed", why)


def nvidia_gpus(proc: Path = Path("/proc/driver/nvidia/gpus")) -> list[str]:
    """The names of NVIDIA GPUs, whether or not JAX can use them."""
    names = []
    command = shutil.which("nvidia-smi")
    if command is not None:
        try:
            done = subprocess.run([command, "-L"], capture_output=True, text=True, timeout=10)
        except (OSError, subprocess.TimeoutExpired):
            done = None
        if done is not None and done.returncode == 0:
            names = [line.split(": ", 1)[1].split(" (UUID")[0] for line in done.stdout.splitlines() if ": " in line]
    if not names and proc.is_dir():
        names = ["NVIDIA GPU"] * len(list(proc.iterdir()))
    return names


def has_cuda_plugin() -> bool:
    """Whether what makes JAX see NVIDIA GPUs is installed."""
    names = {(each.metadata["Name"] or "").lower() for each in importlib.metadata.distributions()}
    return any(name.startswith("jax-cuda") and name.endswith("plugin") for name in names)


def _screen() -> Finding:
    if has_screen():
        return Finding("screen", "there is one: `raceway play` opens a window")
    return Finding("screen", "none: `raceway play` writes a video")


def _drawing() -> Finding:
    """Pictures of MuJoCo tasks are drawn by OpenGL without a screen."""
    if importlib.util.find_spec("OpenGL") is None or importlib.util.find_spec("pygame") is None:
        return Finding("pictures", "the packages that draw are not installed", _RENDER)
    try:
        ctypes.CDLL("libEGL.so.1")
    except OSError:
        return Finding("pictures", "no EGL: MuJoCo tasks cannot be drawn", "apt install libegl1 libgl1")
    return Finding("pictures", "EGL is there: MuJoCo tasks can be drawn without a screen")


def _video() -> Finding:
    if importlib.util.find_spec("imageio_ffmpeg") is None:
        return Finding("videos", "ffmpeg is not installed", _RENDER)
    return Finding("videos", "ffmpeg is there")


def _compiler() -> Finding:
    """Only native environments of the user's own need one."""
    name = "C++ compiler"
    try:
        return Finding(name, f"{find_compiler()[0]}, for native environments of your own")
    except NativeEnvError:
        fix = "apt install g++, or what your system has; or name one: CXX=..."
        return Finding(name, "none: native environments of your own cannot be compiled", fix)


def _folder(runs: Path) -> Finding:
    """Whether runs could be kept: the folder itself, or the nearest one above it that is there."""
    place = runs.absolute()
    while not place.exists():
        place = place.parent
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        fix = "use another one: raceway train ... --log.directory FOLDER"
        return Finding("run folders", f"cannot be made in {runs.absolute()}: {error.strerror}", fix, is_bad=True)
    free = shutil.disk_usage(place).free / _GIB
    return Finding("run folders", f"{runs.absolute()}, {free:.1f} GiB free")
