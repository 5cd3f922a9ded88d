// Transition tables: what FrozenLake, CliffWalking and Taxi have in common.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "../../random.hpp"

namespace raceway {

struct Outcome {
  double probability;
  double cumulative;  // of this outcome and those before it
  std::int64_t state;
  double reward;
  bool terminated;
};

// Up to three outcomes of one action in one state.
class Outcomes {
 public:
  void add(double probability, std::int64_t state, double reward, bool terminated) {
    const double before = count_ == 0 ? 0.0 : outcomes_[count_ - 1].cumulative;
    outcomes_[count_++] = {probability, before + probability, state, reward, terminated};
  }

  // The first outcome whose cumulative probability exceeds one random number; the first of all if none does.
  const Outcome& draw(Random& random) const {
    const double number = random.uniform();
    for (std::size_t i = 0; i < count_; ++i) {
      if (outcomes_[i].cumulative > number) return outcomes_[i];
    }
    return outcomes_[0];
  }

 private:
  std::size_t count_ = 0;
  std::array<Outcome, 3> outcomes_{};
};

// outcomes(state, action)
class Transitions {
 public:
  Transitions(std::int64_t states, std::int64_t actions)
      : actions_(actions), table_(static_cast<std::size_t>(states * actions)) {}

  Outcomes& at(std::int64_t state, std::int64_t action) {
    return table_[static_cast<std::size_t>(state * actions_ + action)];
  }
  const Outcomes& at(std::int64_t state, std::int64_t action) const {
    return table_[static_cast<std::size_t>(state * actions_ + action)];
  }

 private:
  std::int64_t actions_;
  std::vector<Outcomes> table_;
};

// Where an episode starts: equal weight on each marked state.
class Starts {
 public:
  explicit Starts(const std::vector<bool>& marked) {
    double total = 0.0;
    for (const bool mark : marked) total += mark ? 1.0 : 0.0;
    double sum = 0.0;
    for (const bool mark : marked) cumulative_.push_back(sum += (mark ? 1.0 : 0.0) / total);
  }

  std::int64_t draw(Random& random) const {
    const double number = random.uniform();
    for (std::size_t state = 0; state < cumulative_.size(); ++state) {
      if (cumulative_[state] > number) return static_cast<std::int64_t>(state);
    }
    return 0;
  }

  std::int64_t size() const { return static_cast<std::int64_t>(cumulative_.size()); }

 private:
  std::vector<double> cumulative_;
};

}  // namespace raceway
