"""Headers of native environments that tests load, and where their libraries go."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

# As short as one can be: no arguments, no options, no picture.
NOISE = """
#pragma once
#include <raceway/native.hpp>
#include "parts.hpp"

struct Noise {
  using Scalar = double;
  using Action = std::int64_t;
  static constexpr std::size_t kObsSize = 2, kActionSize = 1;

  static raceway::Spaces spaces() {
    return {{raceway::box<double>({-9, -9}, {9, 9})}, raceway::discrete(2)};
  }
  void reset(raceway::Random& random) { draw_from(random); }
  raceway::Step step(const Action*, raceway::Random& random) {
    draw_from(random);
    return {kReward, false};
  }
  void observe(Scalar* row) const {
    row[0] = normal_;
    row[1] = uniform_;
  }
  template <class Archive>
  void archive(Archive& archive) {
    archive("normal", normal_);
    archive("uniform", uniform_);
  }

 private:
  void draw_from(raceway::Random& random) {
    normal_ = random.normal();
    uniform_ = random.uniform();
  }
  double normal_ = 0.0, uniform_ = 0.0;
};

RACEWAY_ENV(Noise, "Noise-v0", 0)
"""


def cart_pole(place: Path, env_id: str = "MyPole-v0") -> Path:
    """A copy of the built-in task, under another id."""
    source = (ROOT / "core/envs/classic/cart_pole.hpp").read_text()
    header = place / "my_pole.hpp"
    header.write_text(
        source.replace('"../../env.hpp"', "<raceway/native.hpp>")
        + f'\nRACEWAY_ENV(raceway::CartPole, "{env_id}", 500)\n'
    )
    return header


def noise(place: Path, reward: float = 1.0) -> Path:
    """An environment that shows what it draws."""
    (place / "noise.hpp").write_text(NOISE)
    change_reward(place, reward)
    return place / "noise.hpp"


def change_reward(place: Path, reward: float) -> None:
    (place / "parts.hpp").write_text(f"#pragma once\nconstexpr double kReward = {reward};\n")
