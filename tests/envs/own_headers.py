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


# Its action says how it fills its infos: as spaces() names them, or not.
INFOS = """
#pragma once
#include <raceway/native.hpp>
using namespace raceway;

struct Infos {
  using Scalar = float;
  using Action = std::int64_t;
  static constexpr std::size_t kObsSize = 1, kActionSize = 1;

  static Spaces spaces() {
    return {{box<float>({0}, {9})}, discrete(5), {entry<double>("chance"), entries<std::int8_t>("mask", 3)}};
  }
  void reset(Random&) { how_ = 0; }
  Step step(const Action* action, Random&) {
    how_ = *action;
    return {1.0, false};
  }
  void observe(float* row) const { row[0] = static_cast<float>(how_); }
  void info(InfoRow row) const {
    *row.entry<double>(0) = 0.5;
    row.entry<std::int8_t>(1, 3)[2] = 1;
    if (how_ == 1) *row.entry<double>(2) = 1.0;
    if (how_ == 2) *row.entry<float>(0) = 1.0F;
    if (how_ == 3) *row.entry<std::int8_t>(1, 4) = 1;
    if (how_ == 4) *row.entry<double>(static_cast<std::size_t>(-1)) = 1.0;
  }
  template <class Archive>
  void archive(Archive& archive) {
    archive("how", how_);
  }

 private:
  std::int64_t how_ = 0;
};

RACEWAY_ENV(Infos, "Infos-v0", 0)
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
