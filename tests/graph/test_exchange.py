"""Messages between processes that are started afresh: what arrives, what it costs in memory, and what a death does."""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from raceway._core import Bell, Exchange, Letter, Patience
from tests.envs.processes import ROOT, open_files, output_of, run_script

PATIENCE_S = 20.0

# What every other process begins with: `exchange` is its end, `messages()` gives what arrives, `send` waits for room.
PEER = """
import os, sys, time, zlib
import numpy as np
from raceway._core import Exchange, Patience, die_with_parent
die_with_parent(int(sys.argv[3]))
exchange, patience = Exchange(int(sys.argv[1]), int(sys.argv[2])), Patience()
os.close(int(sys.argv[1]))

def messages():
    while True:
        seen = exchange.now()
        arrived = exchange.receive()
        yield from arrived
        if not arrived:
            del arrived
            exchange.wait(seen, patience)

def send(head, parts=()):
    letter = exchange.write(head, parts, 1)
    while not exchange.post(0, letter):
        time.sleep(0.001)
"""

ECHO = """
for head, parts in messages():
    send(head, parts)
"""

CHATTER = """
while True:
    for head, parts in exchange.receive():
        send(head, parts)
    send(b"unasked", [bytes(30_000)])
"""


class Program:
    """This process as host 0 of a program, and the others."""

    def __init__(self, hosts: int) -> None:
        self.fd = Exchange.create(hosts)
        self.exchange = Exchange(self.fd, 0)
        self.patience = Patience()
        self.peers: list[subprocess.Popen] = []

    def start(self, script: str) -> subprocess.Popen:
        command = [sys.executable, "-c", PEER + textwrap.dedent(script)]
        command += [str(self.fd), str(len(self.peers) + 1), str(os.getpid())]
        peer = subprocess.Popen(command, cwd=ROOT, pass_fds=[self.fd])
        self.peers.append(peer)
        return peer

    def send(self, head: bytes, parts: list | tuple = (), to: int = 1) -> None:
        self.post(to, self.exchange.write(head, parts, 1))

    def post(self, to: int, letter: Letter) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not self.exchange.post(to, letter):
            assert time.monotonic() < deadline, "there was never room"
            time.sleep(0.001)

    def receive(self, count: int = 1) -> list[tuple[bytes, list[np.ndarray]]]:
        messages: list[tuple[bytes, list[np.ndarray]]] = []
        while len(messages) < count:
            seen = self.exchange.now()
            arrived = self.exchange.receive()
            if not arrived:
                assert self.exchange.wait(seen, self.patience, PATIENCE_S), "nothing came"
            messages += arrived
        assert len(messages) == count
        return messages

    def close(self) -> None:
        for peer in self.peers:
            peer.kill()
            peer.wait()
        os.close(self.fd)


@contextlib.contextmanager
def program(hosts: int) -> Iterator[Program]:
    opened = Program(hosts)
    try:
        yield opened
    finally:
        opened.close()


def test_messages_of_all_sizes_go_there_and_back_unchanged() -> None:
    random = np.random.default_rng(0)
    with program(2) as here:
        here.start(ECHO)
        for _ in range(500):
            head = random.bytes(int(2 ** random.uniform(0, 16)) - 1)
            parts = [random.bytes(int(2 ** random.uniform(0, 20)) - 1) for _ in range(random.integers(0, 5))]
            here.send(head, parts)
            [(head_back, parts_back)] = here.receive()
            assert head_back == head
            assert [bytes(part) for part in parts_back] == parts


def test_pickled_arrays_arrive_read_only_and_aligned() -> None:
    values = {
        "empty": np.zeros((0, 3)),
        "small": np.arange(7.0),
        "fortran": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        "large": np.arange(1_000_000).reshape(1000, 1000),
    }
    with program(2) as here:
        here.start(ECHO)
        for chosen in ({"small", "fortran", "empty"}, set(values)):
            buffers: list[pickle.PickleBuffer] = []
            sent = {name: value for name, value in values.items() if name in chosen}
            here.send(pickle.dumps(sent, protocol=5, buffer_callback=buffers.append), buffers)
            [(head, parts)] = here.receive()
            back = pickle.loads(head, buffers=parts)
            assert back.keys() == sent.keys()
            for name, value in back.items():
                np.testing.assert_array_equal(value, values[name])
                assert value.flags.f_contiguous == values[name].flags.f_contiguous
                assert not value.flags.writeable
                assert value.ctypes.data % 16 == 0
                with pytest.raises(ValueError, match="WRITEABLE"):
                    value.flags.writeable = True


def test_arrays_that_a_reader_keeps_stay_as_they_are_while_thousands_of_messages_go_by() -> None:
    script = """
    kept = []
    for number, (head, parts) in enumerate(messages()):
        if head == b"end":
            break
        if number % 100 == 0:
            kept.append((int(head), parts))
    for expected, parts in kept:
        assert [zlib.crc32(part) for part in parts] == [expected] * len(parts)
        assert not any(part.flags.writeable for part in parts)
    send(str(len(kept)).encode())
    """
    random = np.random.default_rng(1)
    with program(2) as here:
        here.start(script)
        for _ in range(3000):
            part = random.bytes(int(random.integers(1, 60_000)))
            here.send(str(zlib.crc32(part)).encode(), [part])
        here.send(b"end")
        assert here.receive()[0][0] == b"30"


def test_a_broadcast_is_one_copy_that_all_readers_see() -> None:
    with program(4) as here:
        for _ in range(3):
            here.start("for head, parts in messages():\n    send(str(zlib.crc32(parts[0])).encode())")
        array = np.random.default_rng(0).integers(0, 255, 10_000_000, dtype=np.uint8)
        before = shared_kib()
        for _ in range(20):
            letter = here.exchange.write(b"", [array], 3)
            for to in (1, 2, 3):
                here.post(to, letter)
            assert [int(head) for head, _ in here.receive(3)] == [zlib.crc32(array.data)] * 3
        assert shared_kib() - before < 3 * 11_000  # two slots take turns, three if a reader is slow to let go


def shared_kib() -> int:
    """Shared memory of this process that is in RAM."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("RssShmem")).split()[1])


def test_a_lease_is_sent_where_it_lies() -> None:
    with program(2) as here:
        exchange = here.exchange
        own = Exchange(here.fd, 1)
        lease = exchange.lease(4_000_000)
        assert lease.shape == (4_000_000,)
        assert lease.dtype == np.uint8
        assert lease.flags.writeable
        assert lease.ctypes.data % 64 == 0
        lease[:] = 1
        here.send(b"", [lease.view(np.float32).reshape(1000, 1000), lease[5:10], np.ones(3)])
        [(_, parts)] = own.receive()
        lease[7] = 99  # which nobody should do, but shows that the readers see this very memory
        assert bytes(parts[0][:8]) == b"\1\1\1\1\1\1\1\x63"
        assert bytes(parts[1]) == b"\1\1\x63\1\1"
        del lease
        other = exchange.lease(4_000_000)
        other[:] = 2
        assert bytes(parts[1]) == b"\1\1\x63\1\1"


def test_a_reader_that_was_killed_does_not_stop_its_writer() -> None:
    with program(3) as here:
        victim = here.start("for head, parts in messages():\n    keep = parts\n    send(head)\n    time.sleep(100)")
        here.start(ECHO)
        here.send(b"first", [bytes(100_000)])
        here.receive()
        victim.kill()
        victim.wait()
        refused = 0
        for number in range(500):
            letter = here.exchange.write(str(number).encode(), [bytes(30_000 if number < 200 else 3_000)], 2)
            here.post(2, letter)
            refused += not here.exchange.post(1, letter)
            assert here.receive()[0][0] == str(number).encode()
        assert refused > 0  # its ring is full


@pytest.mark.slow
def test_a_process_killed_at_any_moment_stops_nobody() -> None:
    random = np.random.default_rng(2)
    for _ in range(20):
        with program(3) as here:
            victim = here.start(CHATTER)
            here.start(ECHO)
            end = time.monotonic() + float(random.uniform(0.3, 0.5))
            while time.monotonic() < end:
                here.exchange.post(1, here.exchange.write(b"to the victim", [bytes(20_000)], 1))
                here.exchange.receive()
            victim.kill()
            victim.wait()
            here.exchange.receive()
            for number in range(200):
                here.send(str(number).encode(), [bytes(30_000)], to=2)
                assert here.receive()[0][0] == str(number).encode()


def mapped() -> int:
    return Path("/proc/self/maps").read_text().count("memfd:raceway")


@pytest.mark.alone
def test_nothing_is_left_behind() -> None:
    def once() -> None:
        with program(2) as here:
            here.start(ECHO)
            here.send(b"", [bytes(1_000_000)])
            [(_, parts)] = here.receive()
            assert bytes(parts[0][:3]) == b"\0\0\0"

    once()
    files, shared, maps = open_files(), set(os.listdir("/dev/shm")), mapped()
    for _ in range(3):
        once()
    assert open_files() <= files
    assert set(os.listdir("/dev/shm")) <= shared
    assert mapped() <= maps


def test_arrays_outlive_the_exchange_and_its_file() -> None:
    maps = mapped()
    fd = Exchange.create(2)
    writer, reader = Exchange(fd, 0), Exchange(fd, 1)
    os.close(fd)
    lease = writer.lease(100_000)
    lease[:] = 7
    assert writer.post(1, writer.write(b"", [bytes([5]) * 100_000, lease], 1))
    [(_, parts)] = reader.receive()
    del writer, reader
    lease[0] = 8
    assert (parts[0] == 5).all()
    assert parts[1][0] == 8
    del lease, parts
    assert mapped() <= maps


def test_a_forked_child_gives_back_nothing_that_its_parent_holds() -> None:
    fd = Exchange.create(2)
    writer, reader = Exchange(fd, 0), Exchange(fd, 1)
    os.close(fd)
    assert writer.post(1, writer.write(b"", [bytes([5]) * 100_000], 1))
    messages = reader.receive()
    child = os.fork()
    if child == 0:
        del messages
        try:
            writer.lease(10)
        except RuntimeError as error:
            os._exit(0 if "before a fork" in str(error) else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    lease = writer.lease(100_000)
    lease[:] = 6
    assert (messages[0][1][0] == 5).all()


def test_an_interpreter_ends_with_arrays_held_and_threads_waiting() -> None:
    script = """
    import os, sys, threading, time
    from raceway._core import Bell, Exchange, Patience
    fd = Exchange.create(2)
    writer, reader = Exchange(fd, 0), Exchange(fd, 1)
    writer.post(1, writer.write(b"", [bytes(100_000)], 1))
    sys.kept = [reader.receive(), writer.lease(10), writer.write(b"", [bytes(100_000)], 1)]
    bell = Bell()
    for wait in (bell.wait, reader.wait):
        threading.Thread(target=wait, args=(0 if wait == bell.wait else reader.now(), Patience()), daemon=True).start()
    time.sleep(0.1)
    print("end")
    """
    assert output_of(script) == "end"


def test_a_main_thread_that_waits_hears_signals() -> None:
    script = """
    import os, signal, threading, time
    from raceway._core import Exchange, Patience
    exchange = Exchange(Exchange.create(1), 0)
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    start = time.perf_counter()
    try:
        exchange.wait(exchange.now(), Patience())
    except KeyboardInterrupt:
        print(time.perf_counter() - start < 2.0)
    """
    assert output_of(script) == "True"


def test_a_bell_wakes_one_waiter_or_all() -> None:
    bell = Bell()
    seen = bell.now()
    awake = []
    waiters = [
        threading.Thread(target=lambda: awake.append(bell.wait(seen, Patience(0.0), PATIENCE_S))) for _ in range(4)
    ]
    for waiter in waiters:
        waiter.start()
    time.sleep(0.2)
    bell.ring()
    time.sleep(0.2)
    assert awake == [True]
    bell.ring_all()
    for waiter in waiters:
        waiter.join()
    assert awake == [True] * 4


def test_a_wait_ends_at_its_timeout_and_not_before() -> None:
    bell, exchange = Bell(), Exchange(Exchange.create(1), 0)
    for each in (bell, exchange):
        start = time.perf_counter()
        assert not each.wait(each.now(), Patience(), 0.12)
        assert 0.12 <= time.perf_counter() - start < 2.0
        each.ring()
        assert each.wait(each.now() - 1, Patience(), 0.0)


def test_abort_reaches_every_process() -> None:
    with program(2) as here:
        peer = here.start("send(b'ready')\nwhile not exchange.aborted: exchange.wait(exchange.now(), patience)")
        here.receive()
        assert not here.exchange.aborted
        here.exchange.abort()
        assert here.exchange.aborted
        assert peer.wait(timeout=PATIENCE_S) == 0


def test_what_was_sent_is_counted() -> None:
    exchange = Exchange(Exchange.create(3), 1)
    assert (exchange.host, exchange.hosts) == (1, 3)
    exchange.post(2, exchange.write(b"abc", [bytes(100_000), b"x"], 1))
    assert exchange.sent() == [(0, 0), (0, 0), (1, 100_004)]


def test_wrong_arguments_are_refused() -> None:
    exchange = Exchange(Exchange.create(2), 0)
    with pytest.raises(ValueError, match="the hosts are 0 to 1"):
        exchange.post(5, exchange.write(b"", [], 1))
    with pytest.raises(ValueError, match="readers=0"):
        exchange.write(b"", [], 0)
    letter = exchange.write(b"", [], 1)
    exchange.post(1, letter)
    with pytest.raises(ValueError, match="all the readers"):
        exchange.post(1, letter)
    with pytest.raises(ValueError, match="contiguous"):
        exchange.write(b"", [np.arange(10)[::2]], 1)
    with pytest.raises(TypeError):
        exchange.write(b"", [3], 1)  # type: ignore[list-item]
    with pytest.raises(ValueError, match="host=2"):
        Exchange(Exchange.create(2), 2)


def test_limited_address_space_means_smaller_ranges_or_a_clear_error() -> None:
    script = """
    import resource, sys
    import numpy as np
    from raceway._core import Exchange
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]) << 20,) * 2)
    try:
        exchange = Exchange(Exchange.create(9), 0)
    except RuntimeError as error:
        print(error)
    else:
        lease = exchange.lease(50_000_000)
        lease[:] = 1
        print(np.zeros(500_000_000, dtype=np.uint8).size)
    """
    assert output_of(script, "16384") == "500000000"
    assert "ulimit -v" in output_of(script, "1200")


def test_a_process_dies_with_its_parent() -> None:
    script = """
    import os, subprocess, sys, time
    child = "import os, sys, time; from raceway._core import die_with_parent; die_with_parent(int(sys.argv[1])); "
    child += "print(os.getpid(), flush=True); time.sleep(100)"
    process = subprocess.Popen([sys.executable, "-c", child, str(os.getpid())], stdout=subprocess.PIPE, text=True)
    print(process.stdout.readline(), end="", flush=True)
    os._exit(0)
    """
    pid = int(output_of(script))
    deadline = time.monotonic() + PATIENCE_S
    while runs(pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_process_whose_parent_is_gone_already_ends_at_once() -> None:
    ended = run_script("from raceway._core import die_with_parent; die_with_parent(1); print('still here')")
    assert (ended.code, ended.output) == (1, "")


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


LIMITED = """
import resource
from raceway.errors import LimitError
from raceway.graph.messages import shared_memory

resource.setrlimit(resource.RLIMIT_FSIZE, (20480, 20480))
try:
    shared_memory(2)
except LimitError as error:
    print(error)
"""


def test_a_limit_that_leaves_no_memory_to_share_is_one_message() -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("There is no address space for 2 processes to share")
