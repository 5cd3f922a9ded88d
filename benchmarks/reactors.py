"""The reactors of the experiments with graphs, and the programs that they are put together to."""

from __future__ import annotations

import itertools
import time
from queue import SimpleQueue
from time import perf_counter_ns
from typing import Any

import numpy as np

from benchmarks.workloads import NAP_S, Digest, Job
from raceway.graph import Effect, Input, Inputs, Output, Processes, Program, Reactor, Timer, reaction, startup


class Baton:
    """Lets a program run a number of rounds, and then wait until it is asked for more.

    Its driver calls `pass_on` at the beginning of every round; whoever wants rounds calls `turn`, from another thread.
    """

    def __init__(self) -> None:
        self._wanted: SimpleQueue[int] = SimpleQueue()
        self._answers: SimpleQueue[float | BaseException] = SimpleQueue()
        self._left = 0
        self._start = 0.0

    def turn(self, rounds: int) -> float:
        """Lets it run so many rounds; gives the seconds that they took."""
        self._wanted.put(rounds)
        answer = self._answers.get()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def pass_on(self) -> bool:
        """The driver's call. False if the program is to end."""
        if self._left == 0:
            if self._start:
                self._answers.put(time.perf_counter() - self._start)
            self._left = self._wanted.get()
            self._start = time.perf_counter()
        self._left -= 1
        return self._left >= 0

    def end(self) -> None:
        self._wanted.put(0)

    def drop(self, error: BaseException) -> None:
        """The program has failed: whoever waits for it is told why."""
        self._answers.put(error)


class Lead(Reactor):
    """A reactor that begins every round, when there is one to be played."""

    clock = Timer()

    def __init__(self, baton: Baton) -> None:
        self.baton = baton

    def begin(self) -> None:
        if not self.baton.pass_on():
            self.stop()


class Driver(Lead):
    """Sends messages, gathers results, and with those sends the next messages a round later."""

    results = Inputs[Any]()
    messages = Output[Any]()

    def __init__(self, job: Job, baton: Baton) -> None:
        super().__init__(baton)
        workload = job.workload()
        self.digest = Digest()
        self._drive = workload.driver(self._empty)
        self._proof_rounds = workload.proof_rounds

    @reaction((Lead.clock, results), effects=messages)
    def drive(self, results: tuple[Any, ...]) -> Effect[Any]:
        if 0 < self.round <= self._proof_rounds:
            self.digest.add(results)
        self.begin()
        return self.messages(self._drive(results if self.round else None))

    def _empty(self, shape: Any, dtype: Any) -> np.ndarray:
        return self.messages.empty(shape, dtype)


class Worker(Reactor):
    """Does its work on each message."""

    messages = Input[Any]()
    result = Output[Any]()

    def __init__(self, job: Job) -> None:
        self.job = job

    @reaction(startup)
    def open(self) -> None:
        workload = self.job.workload()
        self._is_shared = workload.shared
        self._work = workload.worker(self.index, self._empty)

    @reaction(messages, effects=result)
    def work(self, messages: Any) -> Effect[Any]:
        return self.result(self._work(messages if self._is_shared else messages[self.index]))

    def _empty(self, shape: Any, dtype: Any) -> np.ndarray:
        return self.result.empty(shape, dtype)


def lock_step(job: Job, baton: Baton, processes: int) -> tuple[Program, Driver]:
    """A driver, and a bank of workers: in this process, or spread over some others."""
    program = Program(job.experiment)
    driver = program.add(Driver(job, baton))
    workers = program.bank(Worker(job) for _ in range(job.workers))
    program.connect(driver.messages, workers.messages)
    program.connect(workers.result, driver.results, after=1)
    if processes:
        program.place(workers, Processes(processes))
    return program, driver


class Source(Lead):
    """Sends a number on its way."""

    value = Output[int]()

    @reaction(Lead.clock, effects=value)
    def send(self) -> Effect[int]:
        self.begin()
        return self.value(1)


class Link(Reactor):
    """Passes a number on: as little as a reaction can do."""

    value = Input[int]()
    same = Output[int]()

    @reaction(value, effects=same)
    def pass_on(self, value: int) -> Effect[int]:
        return self.same(value)


def chain(job: Job, baton: Baton) -> Program:
    """So many reactors in a row."""
    program = Program("chain")
    source = program.add(Source(baton))
    links = [program.add(Link()) for _ in range(job.workers - 1)]
    program.connect(source.value, links[0].value)
    for link, following in itertools.pairwise(links):
        program.connect(link.same, following.value)
    return program


class Ping(Lead):
    """Sends an array when the last one has come back."""

    back = Input[np.ndarray]()
    ball = Output[np.ndarray]()

    def __init__(self, size: int, baton: Baton) -> None:
        super().__init__(baton)
        self._array = np.zeros(size, dtype=np.uint8)

    @reaction((Lead.clock, back), effects=ball)
    def hit(self, back: np.ndarray) -> Effect[np.ndarray]:
        self.begin()
        return self.ball(self._array)


class Pong(Reactor):
    """Answers an array with one of the same size."""

    ball = Input[np.ndarray]()
    back = Output[np.ndarray]()

    def __init__(self, size: int) -> None:
        self._array = np.zeros(size, dtype=np.uint8)

    @reaction(ball, effects=back)
    def hit(self, ball: np.ndarray) -> Effect[np.ndarray]:
        return self.back(self._array)


def ping_pong(job: Job, baton: Baton) -> Program:
    """Two hops a round, between this process and another one."""
    program = Program("ping-pong")
    ping, pong = program.add(Ping(job.payload_bytes, baton)), program.add(Pong(job.payload_bytes))
    program.connect(ping.ball, pong.ball)
    program.connect(pong.back, ping.back, after=1)
    program.place(pong, Processes(1))
    return program


class Sender(Lead):
    """Sends a large array to everybody, and sums up how long it took until the last one had it."""

    arrivals = Inputs[int]()
    payload = Output[np.ndarray]()

    def __init__(self, size: int, baton: Baton) -> None:
        super().__init__(baton)
        self._array = np.arange(size // 8)
        self._sent_ns = 0
        self.underway_ns = 0

    @reaction((Lead.clock, arrivals), effects=payload)
    def send(self, arrivals: tuple[int, ...]) -> Effect[np.ndarray]:
        if self._sent_ns:
            self.underway_ns += max(arrivals) - self._sent_ns
        self.begin()
        self._sent_ns = perf_counter_ns()
        return self.payload(self._array)


class Receiver(Reactor):
    """Says when it got an array, by a clock that all processes share."""

    payload = Input[np.ndarray]()
    arrival = Output[int]()

    @reaction(payload, effects=arrival)
    def receive(self, payload: np.ndarray) -> Effect[int]:
        now = perf_counter_ns()
        if payload[-1] != len(payload) - 1:
            raise ValueError(f"The array ends with {payload[-1]}, not with {len(payload) - 1}.")
        return self.arrival(now)


def delivery(job: Job, baton: Baton) -> tuple[Program, Sender]:
    """One array a round for receivers in a process each."""
    program = Program("delivery")
    sender = program.add(Sender(job.payload_bytes, baton))
    receivers = program.bank(Receiver() for _ in range(job.workers))
    program.connect(sender.payload, receivers.payload)
    program.connect(receivers.arrival, sender.arrivals, after=1)
    program.place(receivers, Processes(job.workers))
    return program, sender


class Collector(Lead):
    """Takes its time, with the weights of two rounds ago."""

    weights = Input[int]()
    rollout = Output[int]()

    @reaction((Lead.clock, weights), effects=rollout)
    def collect(self, weights: int | None) -> Effect[int]:
        self.begin()
        time.sleep(NAP_S)
        return self.rollout(self.round)


class Learner(Reactor):
    """Takes its time, with the collector's rollout."""

    rollout = Input[int]()
    weights = Output[int]()

    @reaction(rollout, effects=weights)
    def learn(self, rollout: int) -> Effect[int]:
        time.sleep(NAP_S)
        return self.weights(rollout)


def collect_and_learn(job: Job, baton: Baton) -> Program:
    """A collector and a learner who work at the same time."""
    program = Program("collect and learn")
    collector, learner = program.add(Collector(baton)), program.add(Learner())
    program.connect(collector.rollout, learner.rollout)
    program.connect(learner.weights, collector.weights, after=2)
    return program
