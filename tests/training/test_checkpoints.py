"""Checkpoints: whole or not at all, whoever is killed; read without belief, whatever is in them."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raceway.errors import RunFolderError
from raceway.graph import Snapshot
from raceway.training.array_files import pack_arrays
from raceway.training.checkpoints import Checkpoints, lock


def snapshot_of(round_: int, size: int = 50) -> Snapshot:
    state = {"x": np.full(size, float(round_)), "n": np.int64(round_), "b": b"\0\xff", "t": (1, None, "é")}
    return Snapshot(round_, {"a": round_, "b": -1}, {"a": state, "b": {}}, {"a.x -> b.y": [None, np.arange(3)]})


def assert_good(checkpoints: Checkpoints, round_: int, size: int = 50) -> None:
    found = checkpoints.newest()
    assert found is not None
    assert found.round == found.snapshot.round == round_
    assert found.path == checkpoints.directory / f"checkpoint-{round_:09d}.json"
    expected = snapshot_of(round_, size)
    arrays, text = expected.pack()
    found_arrays, found_text = found.snapshot.pack()
    assert found_text == text
    for name, array in arrays.items():
        np.testing.assert_array_equal(found_arrays[name], array, strict=True)


def names(checkpoints: Checkpoints) -> list[str]:
    return sorted(os.listdir(checkpoints.directory))


def pair(round_: int) -> list[str]:
    return [f"checkpoint-{round_:09d}.json", f"checkpoint-{round_:09d}.safetensors"]


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    return Checkpoints(tmp_path / "checkpoints", keep=2)


def test_without_any_there_is_none(checkpoints: Checkpoints) -> None:
    assert checkpoints.newest() is None
    checkpoints.directory.mkdir()
    (checkpoints.directory / "checkpoint-1.json").write_text("no name of ours")
    assert checkpoints.newest() is None


def test_what_is_written_comes_back_and_the_last_few_stay(checkpoints: Checkpoints) -> None:
    for round_ in (3, 999_999_999, 1_000_000_000, 12_345_678_901):
        path = checkpoints.write(snapshot_of(round_), {"seed": 7, "name": "é"})
        assert_good(checkpoints, round_)
        assert path == checkpoints.directory / f"checkpoint-{round_:09d}.json"
    found = checkpoints.newest()
    assert found is not None
    assert found.facts == {"seed": 7, "name": "é"}
    assert checkpoints.troubles == []
    assert names(checkpoints) == sorted(pair(1_000_000_000) + pair(12_345_678_901))


def test_a_snapshot_from_before_the_first_round_can_be_kept(checkpoints: Checkpoints) -> None:
    checkpoints.write(snapshot_of(-1), {})
    assert_good(checkpoints, -1)
    checkpoints.write(snapshot_of(0), {})
    assert_good(checkpoints, 0)


def test_the_json_file_is_json_and_has_the_checksums_of_both(checkpoints: Checkpoints) -> None:
    path = checkpoints.write(snapshot_of(3), {})
    told = json.loads(path.read_text())
    data = (checkpoints.directory / told["arrays"]).read_bytes()
    assert told["arrays_sha256"] == hashlib.sha256(data).hexdigest()
    head, _, rest = path.read_bytes().partition(b"\n")
    assert told["sha256"] == hashlib.sha256(rest).hexdigest()
    assert head.decode() == f'{{"sha256": "{told["sha256"]}",'


def test_the_same_round_again_replaces_it(checkpoints: Checkpoints) -> None:
    checkpoints.write(snapshot_of(3), {})
    for time_ in range(4):
        checkpoints.write(snapshot_of(5, size=time_ + 1), {"time": time_})
        assert_good(checkpoints, 5, size=time_ + 1)
        assert len(names(checkpoints)) == 4


def test_the_same_round_again_that_fails_leaves_the_first(
    checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints.write(snapshot_of(3), {})
    before = names(checkpoints)
    break_nth(monkeypatch, os, "fsync", 3)  # of the arrays, of the folder, of the JSON file
    with pytest.raises(RunFolderError, match="could not be written"):
        checkpoints.write(snapshot_of(3, size=4), {})
    monkeypatch.undo()
    assert_good(checkpoints, 3)
    assert names(checkpoints) == before


def test_those_after_a_round_that_the_run_went_back_to_are_removed(checkpoints: Checkpoints) -> None:
    for round_ in (3, 5):
        checkpoints.write(snapshot_of(round_), {})
    (checkpoints.directory / pair(5)[1]).write_bytes(b"torn")
    assert_good(checkpoints, 3)
    checkpoints.write(snapshot_of(4), {})
    assert names(checkpoints) == pair(3) + pair(4)
    assert_good(checkpoints, 4)


def test_leftovers_of_writers_that_were_killed_are_removed_and_other_files_stay(checkpoints: Checkpoints) -> None:
    checkpoints.write(snapshot_of(3), {})
    for name in (".checkpoint-000000004.safetensors.0123", ".checkpoint-000000004.json.0123", pair(4)[1], "mine.txt"):
        (checkpoints.directory / name).write_bytes(b"begun")
    assert_good(checkpoints, 3)
    checkpoints.write(snapshot_of(5), {})
    assert names(checkpoints) == sorted([*pair(3), *pair(5), "mine.txt"])


# --- those that cannot be written


def break_nth(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, nth: int) -> None:
    """The nth call from now on fails for want of room."""
    whole, calls = getattr(module, name), [0]

    def call(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        if calls[0] == nth:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return whole(*args, **kwargs)

    monkeypatch.setattr(module, name, call)


@pytest.mark.parametrize(
    ("name", "nth"), [("fsync", 1), ("fsync", 2), ("fsync", 3), ("fsync", 4), ("replace", 1), ("replace", 2)]
)
def test_a_write_that_fails_at_any_point_leaves_good_ones_only(
    checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch, name: str, nth: int
) -> None:
    checkpoints.write(snapshot_of(3), {})
    break_nth(monkeypatch, os, name, nth)
    with pytest.raises(RunFolderError, match=r"checkpoint-000000005\.json could not be written: No space left"):
        checkpoints.write(snapshot_of(5), {})
    monkeypatch.undo()
    if (name, nth) == ("fsync", 4):  # the pair is complete; only whether it outlasts a power cut is not known
        assert_good(checkpoints, 5)
    else:
        assert names(checkpoints) == pair(3)
        assert_good(checkpoints, 3)
    checkpoints.write(snapshot_of(7), {})
    assert_good(checkpoints, 7)


def test_an_interrupted_write_leaves_nothing(checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints.write(snapshot_of(3), {})

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        checkpoints.write(snapshot_of(5), {})
    monkeypatch.undo()
    assert names(checkpoints) == pair(3)


SMALL_DISK = """
import sys
from pathlib import Path
from raceway.errors import RunFolderError
from raceway.training.checkpoints import Checkpoints
from tests.training.test_checkpoints import assert_good, names, pair, snapshot_of

checkpoints = Checkpoints(Path(sys.argv[1]) / "checkpoints", keep=2)
checkpoints.write(snapshot_of(3), {})
for size in (100_000, 5_000_000):
    try:
        checkpoints.write(snapshot_of(5, size), {})
    except RunFolderError as error:
        assert sys.argv[2] in str(error), error
    else:
        raise AssertionError("there was room")
    assert names(checkpoints) == pair(3)
    assert_good(checkpoints, 3)
checkpoints.write(snapshot_of(7), {})
assert_good(checkpoints, 7)
print("done")
"""


def test_a_full_disk_leaves_the_older_ones(tmp_path: Path) -> None:
    mount = f"mount -t tmpfs -o size=256k none {tmp_path}"
    if (
        not shutil.which("unshare")
        or subprocess.run(["unshare", "-rm", "sh", "-c", mount], capture_output=True).returncode
    ):
        pytest.skip("no small disk can be mounted here")
    script = f"{mount} && exec {sys.executable} -c '{SMALL_DISK}' {tmp_path} 'No space left on device'"
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_a_limit_on_the_size_of_files_leaves_the_older_ones(tmp_path: Path) -> None:
    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    done = subprocess.run(
        [sys.executable, "-c", SMALL_DISK, str(tmp_path), "File too large"],
        preexec_fn=limit,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_arrays_that_no_file_holds_are_named(checkpoints: Checkpoints) -> None:
    odd = Snapshot(1, {"a": 1}, {"a": {"words": np.array(["x"])}}, {})
    with pytest.raises(TypeError, match=r"'0:reactors/a/words' is of <U1"):
        checkpoints.write(odd, {})
    assert checkpoints.newest() is None


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").write_text("a file")
    checkpoints = Checkpoints(tmp_path / "checkpoints", keep=1)
    with pytest.raises(RunFolderError, match="could not be written: Not a directory"):
        checkpoints.write(snapshot_of(1), {})
    with pytest.raises(RunFolderError, match="cannot be read: Not a directory"):
        checkpoints.newest()


# --- killed writers

KILLER = """
import itertools, os, random, signal, sys, time
from pathlib import Path
from raceway.training.checkpoints import Checkpoints
from tests.training.test_checkpoints import assert_good, names, pair, snapshot_of

SIZE = 20_000
keep = int(sys.argv[2])
checkpoints = Checkpoints(Path(sys.argv[1]), keep)
moments, last, kills, in_the_act = random.Random(keep), 0, 0, 0
began = time.monotonic()
for _ in range(4):
    checkpoints.write(snapshot_of(0, SIZE), {})
long = time.monotonic() - began
while kills < 40 or last <= keep:
    if not (writer := os.fork()):
        for number in itertools.count(2 * last):
            checkpoints.write(snapshot_of(number // 2, SIZE), {})  # each round twice: one pair replaces the other
    time.sleep(moments.uniform(0.0, 2 * long))
    os.kill(writer, signal.SIGKILL)
    os.waitpid(writer, 0)
    kills += 1
    in_the_act += len(names(checkpoints)) % 2
    found = checkpoints.newest()
    assert found is not None
    assert checkpoints.troubles == []
    assert found.round >= last
    assert_good(checkpoints, found.round, SIZE)
    last = found.round
checkpoints.write(snapshot_of(last + 1), {})
assert_good(checkpoints, last + 1)
assert len(names(checkpoints)) == 2 * keep, names(checkpoints)
print(kills >= 40, in_the_act > 0)
"""


@pytest.mark.parametrize("keep", [1, 3])
def test_whenever_the_writer_is_killed_the_newest_is_good(tmp_path: Path, keep: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLER, str(tmp_path / "checkpoints"), str(keep)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, "True True\n"), done.stdout + done.stderr


# --- those that are not to be believed


def with_told(checkpoints: Checkpoints, round_: int, change: Callable[[dict[str, Any]], Any]) -> None:
    """Changes what the JSON file says, its checksum right."""
    path = checkpoints.directory / pair(round_)[0]
    told = json.loads(path.read_text())
    del told["sha256"]
    rest = json.dumps(change(told) or told)[1:].encode()
    path.write_bytes(b'{"sha256": "%s",\n' % hashlib.sha256(rest).hexdigest().encode() + rest)


def with_arrays(checkpoints: Checkpoints, round_: int, content: bytes) -> None:
    """Replaces the arrays, all checksums right."""
    (checkpoints.directory / pair(round_)[1]).write_bytes(content)
    with_told(checkpoints, round_, lambda told: told.update(arrays_sha256=hashlib.sha256(content).hexdigest()))


def header(entries: Any, data: bytes = b"") -> bytes:
    text = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text + data


def tensor(dtype: str = "F32", shape: Any = (1,), offsets: Any = (0, 4)) -> dict[str, Any]:
    return {"a": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}


HOSTILE_TOLD: dict[str, Callable[[dict[str, Any]], Any]] = {
    "format": lambda told: told.update(format=2),
    "format is text": lambda told: told.update(format="1"),
    "another round": lambda told: told.update(round=4),
    "a round that is true": lambda told: told.update(round=True),
    "no snapshot": lambda told: told.pop("snapshot") and None,
    "facts are a list": lambda told: told.update(facts=[]),
    "arrays lead out": lambda told: told.update(arrays="../../../../etc/passwd"),
    "arrays are a path": lambda told: told.update(arrays="/etc/passwd"),
    "arrays are this file": lambda told: told.update(arrays="checkpoint-000000005.json"),
    "arrays of another": lambda told: told.update(arrays="checkpoint-000000003.safetensors"),
    "arrays are a number": lambda told: told.update(arrays=5),
    "arrays have a nul": lambda told: told.update(arrays="checkpoint-000000005\0.safetensors"),
    "checksum of none": lambda told: told.update(arrays_sha256=""),
    "text is no JSON": lambda told: told.update(snapshot="{"),
    "text is a list": lambda told: told.update(snapshot="[]"),
    "text is deep": lambda told: told.update(snapshot="[" * 100_000),
    "facts are deep": lambda told: None,  # see below
}
HOSTILE_ARRAYS: dict[str, bytes] = {
    "empty": b"",
    "short": b"\x08\0\0",
    "a header of many bytes": struct.pack("<Q", 2**63) + b"{}",
    "a deep header": header(b'{"a":' * 100_000),
    "no tensors": header({}),
    "an odd dtype": header(tensor("BF16", (2,)), b"abcd"),
    "an unknown dtype": header(tensor("PICKLE"), b"abcd"),
    "an absurd shape": header(tensor(shape=(0, 2**62, 2**62), offsets=(0, 0))),
    "many axes": header(tensor(shape=(1,) * 1000), b"abcd"),
    "a negative axis": header(tensor(shape=(-1,)), b"abcd"),
    "offsets outside": header(tensor(offsets=(0, 2**40)), b"abcd"),
    "offsets backwards": header(tensor(offsets=(4, 0)), b"abcd"),
    "truth values": header(tensor("BOOL", (4,)), b"\0\1\2\xff"),
    "arrays of others": pack_arrays({"b": np.zeros(3)}),
}


def text_of(**changes: Any) -> Callable[[dict[str, Any]], Any]:
    def change(told: dict[str, Any]) -> None:
        told["snapshot"] = json.dumps(json.loads(told["snapshot"]) | changes)

    return change


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


HOSTILE_TEXTS: dict[str, dict[str, Any]] = {
    "another field": {"code": "print()"},
    "the round is text": {"round": "5"},
    "the round is a float": {"round": 5.0},
    "the round is true": {"round": True},
    "the round is below": {"round": -2},
    "the round is endless": {"round": 2**70},
    "another round than the name": {"round": 6},
    "rounds are a list": {"rounds": []},
    "rounds are no numbers": {"rounds": {"$dict": [["a", "5"], ["b", 5]]}},
    "rounds of others": {"rounds": {"$dict": [["a", 5], ["c", 5]]}},
    "names are numbers": {"values": {"$dict": [[1, []]]}},
    "values are no list": {"values": {"$dict": [["a.x -> b.y", 3]]}},
    "ends of others": {"ends": {"$dict": [["c", 3]]}},
    "a plain object": {"ends": {"a": 1}},
    "an empty object": {"ends": {}},
    "an unknown kind": {"ends": {"$pickle": "gASVAAAA"}},
    "a dict of no pairs": {"ends": {"$dict": [[1, 2, 3]]}},
    "a dict of text": {"ends": {"$dict": "ab"}},
    "a key that is a list": {"ends": {"$dict": [[[1], 2]]}},
    "a key that is an array": {"ends": {"$dict": [[{"$array": "0:reactors/a/x"}, 2]]}},
    "a key twice": {"ends": {"$dict": [["a", 7], ["a", 8]]}},
    "a record of numbers": {"values": {"$dict": [["a.x -> b.y", [{"$record": [[1, 2]]}]]]}},
    "an array that is not there": {"ends": {"$array": "7:seven"}},
    "an array by number": {"ends": {"$array": 0}},
    "an array by list": {"ends": {"$array": ["0:reactors/a/x"]}},
    "a number of many": {"values": {"$dict": [["a.x -> b.y", [{"$number": "0:reactors/a/x"}]]]}},
    "bytes of floats": {"values": {"$dict": [["a.x -> b.y", [{"$bytes": "0:reactors/a/x"}]]]}},
    "arrays that nobody wants": {"values": {"$dict": [["a.x -> b.y", []]]}},
    "a deep value": {"values": {"$dict": [["a.x -> b.y", [nested(150)]]]}},
    "a deep tuple": {"values": {"$dict": [["a.x -> b.y", [{"$tuple": nested(150)}]]]}},
}


def assert_passed_over(checkpoints: Checkpoints) -> None:
    """The one of round 5 is named, whatever is wrong with it, and that of round 3 is found."""
    assert_good(checkpoints, 3)
    (trouble,) = checkpoints.troubles
    assert str(checkpoints.directory / "checkpoint-000000005.") in trouble
    assert trouble.endswith(".")
    trouble.encode()  # nothing in it that cannot be printed


@pytest.fixture
def two(checkpoints: Checkpoints) -> Checkpoints:
    for round_ in (3, 5):
        checkpoints.write(snapshot_of(round_), {})
    return checkpoints


@pytest.mark.parametrize("which", [0, 1])
def test_any_byte_that_is_not_as_it_was_is_noticed(two: Checkpoints, which: int) -> None:
    path = two.directory / pair(5)[which]
    whole = path.read_bytes()
    for position in range(0, len(whole), 7):
        for content in (
            whole[:position],
            whole[:position] + bytes([whole[position] ^ 1 << position % 8]) + whole[position + 1 :],
            whole[:position] + whole[position + 1 :],
            whole[:position] + b"0" + whole[position:],
        ):
            if content != whole:
                path.write_bytes(content)
                assert_passed_over(two)
    path.write_bytes(whole)
    assert_good(two, 5)


@pytest.mark.parametrize("name", HOSTILE_TOLD)
def test_facts_with_the_right_checksum_are_not_believed(two: Checkpoints, name: str) -> None:
    with_told(two, 5, HOSTILE_TOLD[name])
    if name == "facts are deep":
        rest = b'"facts": ' + b"[" * 100_000
        (two.directory / pair(5)[0]).write_bytes(
            b'{"sha256": "%s",\n' % hashlib.sha256(rest).hexdigest().encode() + rest
        )
    assert_passed_over(two)


@pytest.mark.parametrize("name", HOSTILE_ARRAYS)
def test_arrays_with_the_right_checksum_are_not_believed(two: Checkpoints, name: str) -> None:
    with_arrays(two, 5, HOSTILE_ARRAYS[name])
    assert_passed_over(two)


@pytest.mark.parametrize("name", HOSTILE_TEXTS)
def test_snapshots_with_the_right_checksum_are_not_believed(two: Checkpoints, name: str) -> None:
    with_told(two, 5, text_of(**HOSTILE_TEXTS[name]))
    assert_passed_over(two)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("what", ["folder", "pipe", "nowhere", "itself", "device", "secret", "nothing", "sparse"])
@pytest.mark.timeout(20)
def test_what_is_no_file_of_ours_is_passed_over(two: Checkpoints, which: int, what: str) -> None:
    path = two.directory / pair(5)[which]
    path.unlink()
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "sparse":
        path.touch()
        os.truncate(path, 2**43)
    elif what != "nothing":
        target = {"nowhere": "no/where", "itself": path.name, "device": "/dev/zero", "secret": "/etc/passwd"}[what]
        path.symlink_to(target)
    if what == "nothing" and which == 0:
        assert_good(two, 3)
        assert two.troubles == []
    else:
        assert_passed_over(two)
    two.write(snapshot_of(7), {})
    assert_good(two, 7)
    assert Path("/etc/passwd").is_file()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("which", [0, 1])
def test_what_may_not_be_read_is_passed_over(two: Checkpoints, which: int) -> None:
    (two.directory / pair(5)[which]).chmod(0)
    assert_passed_over(two)


def test_if_none_is_good_each_is_named_with_its_reason(two: Checkpoints) -> None:
    (two.directory / pair(3)[0]).write_text("")
    (two.directory / pair(5)[1]).unlink()
    with pytest.raises(RunFolderError) as raised:
        two.newest()
    message = str(raised.value)
    assert f"{two.directory / pair(3)[0]} is damaged" in message
    assert f"{two.directory / pair(5)[1]} cannot be read: No such file" in message


def test_of_many_bad_ones_only_a_few_are_read(two: Checkpoints, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each may take seconds."""
    for round_ in range(10, 200):
        (two.directory / pair(round_)[0]).write_text("[]" * 1000)
        (two.directory / pair(round_)[1]).touch()
    with pytest.raises(RunFolderError, match=r"None of the checkpoints .* And 7 more"):
        two.newest()
    monkeypatch.setattr("raceway.training.checkpoints._MOST_READ", 7000)
    with pytest.raises(RunFolderError, match=r"None of the checkpoints .* And 1 more"):
        two.newest()
    assert "Those before round 197 were not read" in two.troubles[-1]


# --- one process at a time


def test_a_second_process_is_told_who_has_the_folder(tmp_path: Path) -> None:
    script = f"""if True:
        import sys
        from pathlib import Path
        from raceway.training.checkpoints import lock
        with lock(Path({str(tmp_path)!r})):
            print("locked", flush=True)
            sys.stdin.read()
    """
    other = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout is not None
    assert other.stdout.readline() == b"locked\n"
    with pytest.raises(RunFolderError, match=rf"in use by process {other.pid}\..*kill {other.pid}"), lock(tmp_path):
        pass
    other.kill()
    other.communicate()
    with lock(tmp_path):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"
        with pytest.raises(RunFolderError, match=f"in use by process {os.getpid()}"), lock(tmp_path):
            pass
    with lock(tmp_path):
        pass


def test_the_lock_is_free_after_an_error_and_worker_processes_do_not_hold_it(tmp_path: Path) -> None:
    workers = []

    def work() -> None:
        with lock(tmp_path):
            workers.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))
            raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            work()
    for worker in workers:
        worker.communicate(b"\n")


@pytest.mark.timeout(20)
@pytest.mark.parametrize("what", ["folder", "pipe", "link", "missing"])
def test_a_lock_that_cannot_be_is_told(tmp_path: Path, what: str) -> None:
    path = tmp_path / "lock"
    target = tmp_path / "target"
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "link":
        path.symlink_to(target)
    with pytest.raises(RunFolderError, match="lock"), lock(tmp_path / "no" if what == "missing" else tmp_path):
        pass
    assert not target.exists()
