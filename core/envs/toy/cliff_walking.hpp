// Along the edge of a cliff (Sutton and Barto, example 6.6); stepping off leads back to the start.
#pragma once

#include <algorithm>

#include "../../env.hpp"
#include "tabular.hpp"

namespace raceway {

struct CliffWalking {
  static constexpr const char* kName = "CliffWalking";
  static constexpr std::array kParameters{raceway_parameter{"is_slippery", RACEWAY_FLAG, "False"}};
  static constexpr std::array<raceway_option, 0> kOptions{};
  using Scalar = std::int64_t;
  using Action = std::int64_t;
  static constexpr std::size_t kObsSize = 1, kActionSize = 1;
  static constexpr std::int64_t kRows = 4, kColumns = 12, kStates = kRows * kColumns;
  static constexpr std::int64_t kStart = 36, kGoal = 47;

  struct Config {
    explicit Config(const Arguments& arguments) : transitions(kStates, 4) {
      const bool slippery = arguments.flag("is_slippery", false);
      for (std::int64_t state = 0; state < kStates; ++state) {
        for (std::int64_t action = 0; action < 4; ++action) {
          Outcomes& outcomes = transitions.at(state, action);
          if (slippery) {
            add(outcomes, state, (action + 3) % 4, 1.0 / 3);
            add(outcomes, state, action, 1.0 / 3);
            add(outcomes, state, (action + 1) % 4, 1.0 / 3);
          } else {
            add(outcomes, state, action, 1.0);
          }
        }
      }
    }

    Transitions transitions;

   private:
    // Up, right, down, left; the border holds.
    static void add(Outcomes& outcomes, std::int64_t state, std::int64_t direction, double chance) {
      std::int64_t row = state / kColumns, column = state % kColumns;
      if (direction == 0) row = std::max<std::int64_t>(row - 1, 0);
      if (direction == 1) column = std::min(column + 1, kColumns - 1);
      if (direction == 2) row = std::min(row + 1, kRows - 1);
      if (direction == 3) column = std::max<std::int64_t>(column - 1, 0);
      const std::int64_t next = row * kColumns + column;
      if (next > kStart && next < kGoal) {
        outcomes.add(chance, kStart, -100.0, false);
      } else {
        outcomes.add(chance, next, -1.0, next == kGoal);
      }
    }
  };

  static Spaces spaces(const Config&) { return {{discrete(kStates)}, discrete(4), {entry<double>("prob")}}; }

  explicit CliffWalking(const Config& config) : config_(&config) {}

  // The start is certain, but Gymnasium draws a number for it all the same.
  void reset(Random& random, const double*) {
    random.uniform();
    state_ = kStart;
    probability_ = 1.0;
  }

  Step step(const Action* action, Random& random) {
    const Outcome& outcome = config_->transitions.at(state_, *action).draw(random);
    state_ = outcome.state;
    probability_ = outcome.probability;
    return {outcome.reward, outcome.terminated};
  }

  template <class T>
  void observe(T* row) const {
    *row = static_cast<T>(state_);
  }

  void info(InfoRow row) const { *row.entry<double>(0) = probability_; }

  template <class Archive>
  void archive(Archive& archive) {
    archive("state", state_, Within{0, kStates - 1});
    archive("probability", probability_);
  }

 private:
  const Config* config_;
  std::int64_t state_ = kStart;
  double probability_ = 1.0;
};

}  // namespace raceway
