"""What the doctor finds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from raceway._core import usable_cpus
from raceway.report.doctor import Finding, _compiler, _folder, accelerator_finding, examine, nvidia_gpus, report
from raceway.report.system import system_facts

A100 = "NVIDIA A100"


def test_a_gpu_that_jax_does_not_see_comes_with_the_command_that_mends_it() -> None:
    finding = accelerator_finding([("cpu", "cpu")], [A100], has_plugin=False)
    assert A100 in finding.value
    assert finding.fix == "pip install 'raceway[cuda]'"
    assert not finding.is_bad  # the CPU still trains


def test_a_plugin_that_does_not_work_is_told_from_one_that_is_missing() -> None:
    finding = accelerator_finding([("cpu", "cpu")], [A100], has_plugin=True)
    assert "plugin is installed" in finding.value
    assert "driver" in finding.fix


def test_what_jax_sees_needs_no_fix() -> None:
    assert accelerator_finding([("gpu", A100)], [A100], has_plugin=True) == Finding("accelerator", f"JAX sees {A100}")
    assert accelerator_finding([("cpu", "cpu")], [], has_plugin=False).fix == ""


def test_gpus_are_found_by_the_driver_or_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert nvidia_gpus(tmp_path / "none") == []
    (tmp_path / "gpus" / "0000:01:00.0").mkdir(parents=True)
    assert nvidia_gpus(tmp_path / "gpus") == ["NVIDIA GPU"]
    command = tmp_path / "nvidia-smi"
    command.write_text("#!/bin/sh\necho 'GPU 0: NVIDIA A100 (UUID: GPU-1)'\n")
    command.chmod(0o755)
    assert nvidia_gpus(tmp_path / "none") == [A100]
    command.write_text("#!/bin/sh\necho 'no driver'; exit 9\n")
    assert nvidia_gpus(tmp_path / "none") == []


def test_a_compiler_is_named_or_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CXX", "mine -m64")
    assert _compiler().value.startswith(str(tmp_path / "mine"))
    monkeypatch.setenv("CXX", "nonesuch")
    assert "apt install g++" in _compiler().fix
    assert not _compiler().is_bad


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_bad(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert _folder(tmp_path / "runs").is_bad


def test_a_run_folder_below_a_file_is_bad(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    finding = _folder(tmp_path / "file")
    assert finding.is_bad
    assert "--log.directory" in finding.fix


def test_everything_is_examined_and_nothing_is_left_behind(tmp_path: Path) -> None:
    findings = examine(tmp_path / "runs")
    by_name = {finding.name: finding for finding in findings}
    for name in ("python", "raceway", "jax", "jaxlib", "numpy", "gymnasium", "mujoco"):
        assert by_name[name].value[0].isdigit()
    assert by_name["CPUs"].value.startswith(f"{usable_cpus()} usable")
    assert "CPU" in by_name["accelerator"].value or "JAX" in by_name["accelerator"].value
    assert list(tmp_path.iterdir()) == []


def test_the_report_ends_with_the_sum_of_it() -> None:
    good, better, bad = Finding("a", "x"), Finding("b", "y", "do z"), Finding("c", "z", "do w", is_bad=True)
    assert report([good]).endswith("All is well.")
    assert "to change that: do z" in report([good, better])
    assert report([good, better]).endswith("Training works. 1 thing could be better (!).")
    assert report([good, better, bad]).endswith("1 thing must be put right before training works (✗).")


def test_system_facts_tell_what_bits_depend_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPROC", "3")
    facts = system_facts()
    assert facts["xla_threads"] == 3
    monkeypatch.delenv("NPROC")
    assert system_facts()["xla_threads"] == facts["usable_cpus"] == usable_cpus()
    assert facts["versions"]["jaxlib"]
