"""The junction that policies drive through."""

import numpy as np

from benchmarks.junction import BRAKE, COLLISION_REWARD, DELAY_REWARD, GAS, OBSERVATION_SIZE, OUTSIDE, Junction


def empty(num_agents: int, **kwargs: float) -> Junction:
    """A junction that no car comes to by itself."""
    return Junction(num_agents, seed=0, arrival=0.0, **kwargs)  # type: ignore[arg-type]


def put(junction: Junction, car: int, road: int, place: int) -> None:
    junction.road[car], junction.place[car] = road, place


def test_the_same_seed_and_actions_give_the_same_bits():
    def play(seed: int) -> tuple[bytes, bytes]:
        junction, generator = Junction(6, seed), np.random.default_rng(7)
        steps = [junction.step(generator.integers(2, size=6)) for _ in range(100)]
        return b"".join(obs.tobytes() for obs, _, _ in steps), b"".join(rewards.tobytes() for _, rewards, _ in steps)

    assert play(1) == play(1)
    assert play(1) != play(2)


def test_gas_moves_a_car_by_a_cell_brake_does_not_and_at_the_end_it_leaves():
    junction = empty(2)
    put(junction, 0, road=0, place=5)
    put(junction, 1, road=1, place=2)
    junction.step(np.array([GAS, BRAKE]))
    assert junction.place.tolist() == [6, 2]
    junction.step(np.array([GAS, GAS]))
    assert junction.place.tolist() == [OUTSIDE, 3]


def test_cars_that_meet_in_the_middle_are_punished_and_delay_costs_more_the_longer_it_lasts():
    junction = empty(3)
    put(junction, 0, road=0, place=2)
    put(junction, 1, road=1, place=2)
    _, rewards, _ = junction.step(np.array([GAS, GAS, GAS]))
    assert rewards.tolist() == [COLLISION_REWARD + DELAY_REWARD, COLLISION_REWARD + DELAY_REWARD, 0.0]
    _, rewards, _ = junction.step(np.array([GAS, BRAKE, GAS]))
    assert rewards.tolist() == [2 * DELAY_REWARD, 2 * DELAY_REWARD, 0.0]


def test_a_car_sees_itself_and_who_is_next_to_it_and_one_outside_sees_nothing():
    junction = empty(4)
    put(junction, 0, road=0, place=2)
    put(junction, 1, road=0, place=3)
    put(junction, 2, road=1, place=6)
    seen = junction.observe()
    assert (seen.shape, seen.dtype) == ((4, OBSERVATION_SIZE), np.float32)
    around = seen[:, 5:].reshape(4, 3, 3)
    assert around[0].tolist() == [[0, 0, 0], [0, 1, 1], [0, 0, 0]]
    assert around[1].tolist() == [[0, 0, 0], [1, 1, 0], [0, 0, 0]]
    assert around[2].tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert seen[:3, :3].tolist() == [[1, 1, 0], [1, 1, 0], [1, 0, 1]]
    assert not seen[3].any()


def test_cars_come_in_where_there_is_room_one_at_each_end_and_the_episode_ends():
    junction = Junction(5, seed=0, arrival=1.0, max_steps=3)
    brake = np.full(5, BRAKE)
    assert (junction.place == 0).sum() == 2
    ends = [junction.step(brake)[2] for _ in range(3)]
    assert (junction.place == 0).sum() == 2
    assert ends == [False, False, True]
    junction.step(np.full(5, GAS))
    assert (junction.place >= 0).sum() == 4
