"""A small road junction, in the manner of Traffic Junction (Sukhbaatar et al. 2016), for many policies at once.

Two one-way roads cross in the middle of a square grid. Cars come in at the western and the northern end, and leave at
the eastern and the southern one; each chooses between gas and brake and sees only the cells around it. Two cars in one
cell have collided. Everything that happens is a function of the seed and the actions.
"""

from __future__ import annotations

import numpy as np

GAS, BRAKE = 0, 1
VISION = 1
"""How many cells a car sees in each direction."""
WINDOW = 2 * VISION + 1
OBSERVATION_SIZE = 5 + WINDOW**2
COLLISION_REWARD = -10.0
DELAY_REWARD = -0.01
"""For every step that a car has been on the road, each step: waiting costs more the longer it lasts."""

OUTSIDE = -1


class Junction:
    """One junction and `num_agents` cars, each either on a road or waiting outside until there is room for it."""

    def __init__(self, num_agents: int, seed: int, *, size: int = 7, arrival: float = 0.3, max_steps: int = 40) -> None:
        self.num_agents = num_agents
        self.size = size
        self.arrival = arrival
        self.max_steps = max_steps
        self._random = np.random.default_rng(seed)
        self._cells = _cells(size)
        width = size + 2 * VISION
        self._around = np.add.outer(np.arange(-VISION, VISION + 1) * width, np.arange(-VISION, VISION + 1)).ravel()
        self._grid_cells = width**2
        self.reset()

    def reset(self) -> np.ndarray:
        """Empties the roads; gives the observations, float32 [num_agents, OBSERVATION_SIZE]."""
        self.steps = 0
        self.road = np.zeros(self.num_agents, dtype=np.int64)
        """0 from west to east, 1 from north to south."""
        self.place = np.full(self.num_agents, OUTSIDE)
        """How far along its road each car is."""
        self.age = np.zeros(self.num_agents, dtype=np.int64)
        self.last_action = np.zeros(self.num_agents, dtype=np.int64)
        self._let_cars_in()
        return self.observe()

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        """Moves every car on the road as its action says; gives observations, rewards [num_agents], and the end."""
        self.place += (self.place != OUTSIDE) & (actions == GAS)
        self.place[self.place == self.size] = OUTSIDE
        driving = self.place != OUTSIDE
        self.age = (self.age + 1) * driving
        self.last_action = actions
        rewards = DELAY_REWARD * self.age + COLLISION_REWARD * self.collided()
        self._let_cars_in()
        self.steps += 1
        return self.observe(), rewards, self.steps >= self.max_steps

    def collided(self) -> np.ndarray:
        """Which cars share their cell with another, bool [num_agents]."""
        cells = self._cells[self.road, self.place]
        return self._cars_by_cell(cells)[cells] > 1

    def observe(self) -> np.ndarray:
        """What every car sees: that it is there, its road, place and last action, and the cars in the cells around.

        Those outside see zeros.
        """
        cells = self._cells[self.road, self.place]
        seen = np.empty((self.num_agents, OBSERVATION_SIZE), dtype=np.float32)
        seen[:, 0] = 1.0
        seen[:, 1] = self.road == 0
        seen[:, 2] = self.road == 1
        seen[:, 3] = self.place / self.size
        seen[:, 4] = self.last_action
        seen[:, 5:] = self._cars_by_cell(cells)[cells[:, None] + self._around]
        seen[self.place == OUTSIDE] = 0.0
        return seen

    def _cars_by_cell(self, cells: np.ndarray) -> np.ndarray:
        cars = np.bincount(cells, minlength=self._grid_cells)
        cars[0] = 0  # those outside
        return cars

    def _let_cars_in(self) -> None:
        """At most one car a step comes in at each end, if its first cell is free."""
        for road, drawn in enumerate(self._random.random(2)):
            waiting = np.flatnonzero(self.place == OUTSIDE)
            if drawn < self.arrival and len(waiting) and not np.any((self.road == road) & (self.place == 0)):
                car = waiting[0]
                self.road[car], self.place[car], self.age[car] = road, 0, 0


def _cells(size: int) -> np.ndarray:
    """The cell of each place along each road, [2, size + 1], in a grid that has a border as wide as cars can see.

    The last place of both, which is also place -1, is outside: cell 0, in the border's corner.
    """
    width, middle, along = size + 2 * VISION, size // 2 + VISION, np.arange(size) + VISION
    return np.array([[*(middle * width + along), 0], [*(along * width + middle), 0]])
