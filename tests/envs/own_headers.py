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


# Does what `fault` says, in its step number `at` and from then on.
WILD = """
#pragma once
#include <csignal>
#include <chrono>
#include <thread>
#include <raceway/native.hpp>
using namespace raceway;

struct Wild {
  static constexpr std::array kParameters{raceway_parameter{"fault", RACEWAY_TEXT, "''"},
                                          raceway_parameter{"at", RACEWAY_INTEGER, "1"},
                                          raceway_parameter{"seconds", RACEWAY_REAL, "0.0"}};
  struct Config {
    explicit Config(const Arguments& arguments)
        : fault(arguments.text("fault").value_or("")),
          at(arguments.integer("at", 1)),
          seconds(arguments.real("seconds", 0.0)) {}
    std::string fault;
    std::int64_t at;
    double seconds;
  };
  using Scalar = float;
  using Action = std::int64_t;
  static constexpr std::size_t kObsSize = 2, kActionSize = 1;

  static Spaces spaces(const Config& config) {
    if (config.fault == "spaces") spin();
    return {{box<float>({0, 0}, {1, 1})}, discrete(2), {entries<float>("pair", 2)}};
  }
  explicit Wild(const Config& config) : config_(&config) {
    if (config.fault == "made") spin();
  }
  ~Wild() {
    if (does("destroyed")) spin(config_->seconds);
  }
  void reset(Random&) {
    steps_ = 0;
    parts_.assign(2, 0.0);
  }
  Step step(const Action* action, Random&) {
    ++steps_;
    ++total_;
    volatile std::size_t beyond = 4;
    if (does("struct")) numbers_[beyond] = 1.0F;
    if (does("state")) parts_.push_back(1.0);
    if (does("action")) *const_cast<Action*>(action) ^= 1;
    if (does("segv")) *reinterpret_cast<volatile int*>(8) = 1;
    if (does("abort")) std::abort();
    if (does("fpe")) std::raise(SIGFPE);
    if (does("ill")) __builtin_trap();
    if (does("sleep")) std::this_thread::sleep_for(std::chrono::duration<double>(config_->seconds));
    if (does("endless")) spin();
    if (does("recursion")) recur(1);
    if (total_ == config_->at && config_->fault == "busy") spin(config_->seconds);
    return {1.0, steps_ == 20};
  }
  void observe(float* row) const {
    row[0] = 0.0F;
    if (!does("unset")) row[1] = 0.0F;
    volatile std::ptrdiff_t beyond = does("past") ? 2 : does("before") ? -1 : 0;
    row[beyond] = 1.0F;
  }
  void info(InfoRow row) const {
    volatile std::size_t beyond = does("info") ? 2 : 0;
    for (std::size_t i = 0; i < 2; ++i) row.entry<float>(0, 2)[i + beyond] = 0.0F;
  }
  template <class Archive>
  void archive(Archive& archive) {
    if (does("saved")) spin();
    archive("steps", steps_);
    archive("total", total_);
    archive("parts", parts_);
  }

 private:
  static void spin(double seconds = 1e9) {
    const auto start = std::chrono::steady_clock::now();
    volatile double number = 0.0;
    do {
      for (int i = 0; i < 100'000'000 && (i < 1'000 || seconds > 1e8); ++i) number = number + 1.0;
    } while (std::chrono::steady_clock::now() - start < std::chrono::duration<double>(seconds));
  }
  static int recur(int depth) {
    volatile int room[1000] = {depth};
    return recur(depth + 1) + room[depth % 1000];
  }
  bool does(const char* fault) const { return total_ >= config_->at && config_->fault == fault; }
  const Config* config_;
  std::int64_t steps_ = 0, total_ = 0;
  std::vector<double> parts_{0.0, 0.0};
  float numbers_[4] = {};
};

// Run when the library is opened.
static const bool kOpened = [] {
  const char* fault = std::getenv("WILD_AT_LOAD");
  if (fault && std::string(fault) == "endless") {
    for (volatile double number = 0.0;;) number = number + 1.0;
  }
  if (fault && std::string(fault) == "ill") __builtin_trap();
  return true;
}();

RACEWAY_ENV(Wild, "Wild-v0", 100)
"""


def wild(place: Path) -> Path:
    """An environment that writes where it must not, crashes, or does not come back."""
    (place / "wild.hpp").write_text(WILD)
    return place / "wild.hpp"


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
