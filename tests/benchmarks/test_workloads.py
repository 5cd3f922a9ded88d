"""What is done in the experiments with graphs."""

import numpy as np
import pytest

from benchmarks.workloads import Digest, Job, policy

JOBS = [
    Job("broadcast", 2, payload_bytes=80),
    Job("sampling", 2, "CartPole-v1"),
    Job("sampling", 2, "Pendulum-v1"),
    Job("inference", 3),
]


def play(job: Job, rounds: int) -> str:
    """The digest of so many rounds in a plain loop."""
    workload = job.workload()
    drive, works = workload.driver(), [workload.worker(index) for index in range(job.workers)]
    results, digest = None, Digest()
    for _ in range(rounds):
        messages = drive(results)
        given = [messages] * job.workers if workload.shared else messages
        results = [work(message) for work, message in zip(works, given, strict=True)]
        digest.add(results)
    return str(digest)


@pytest.mark.parametrize("job", JOBS)
def test_rounds_have_the_same_results_every_time(job: Job):
    assert play(job, 20) == play(job, 20)


@pytest.mark.parametrize("job", JOBS)
def test_the_digest_sees_every_round(job: Job):
    assert play(job, 20) != play(job, 21)


def test_environments_have_different_seeds_and_begin_again_when_they_end():
    workload = Job("sampling", 2, "CartPole-v1").workload()
    first, second = workload.worker(0), workload.worker(1)
    assert not np.array_equal(first(1)[0], second(1)[0])
    ends = [first(1)[2] for _ in range(100)]
    assert 5 < sum(ends) < 20


def test_what_is_broadcast_is_an_array_of_its_own_each_round_where_it_was_asked_for():
    workload = Job("broadcast", 1, payload_bytes=800).workload()
    made: list[np.ndarray] = []

    def empty(shape: tuple[int, ...], dtype: type) -> np.ndarray:
        made.append(np.zeros(shape, dtype))
        return made[-1]

    drive, work = workload.driver(empty), workload.worker(0, empty)
    payload = drive(None)
    result = work(payload)
    assert payload is made[0]
    assert result is made[1]
    assert np.array_equal(payload, result)
    assert payload.nbytes == 800
    assert drive([result]) is made[2]


def test_policies_are_different_and_act_by_what_they_see():
    seen = np.random.default_rng(0).normal(size=(50, 14)).astype(np.float32)
    actions = [[act(row) for row in seen] for act in (policy(0), policy(0), policy(1))]
    assert actions[0] == actions[1] != actions[2]
    assert set(actions[0]) == {0, 1}


def test_digests_tell_types_shapes_and_order_apart():
    def digest(value: object) -> str:
        found = Digest()
        found.add(value)
        return str(found)

    values = [np.zeros(4), np.zeros((2, 2)), np.zeros(8, np.float32), [1, 2], [2, 1], (1.0, 2), True]
    assert len({digest(value) for value in values}) == len(values)
