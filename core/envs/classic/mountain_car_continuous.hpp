// The car between two hills, pushed by a continuous force that costs.
#pragma once

#include <cmath>

#include "../../env.hpp"

namespace raceway {

struct MountainCarContinuous {
  static constexpr const char* kName = "MountainCarContinuous";
  static constexpr std::array kParameters{raceway_parameter{"goal_velocity", RACEWAY_REAL, "0"}};
  static constexpr std::array kOptions{any_number("low", -0.6), any_number("high", -0.4)};
  using Scalar = float;
  using Action = float;
  static constexpr std::size_t kObsSize = 2, kActionSize = 1;

  struct Config {
    explicit Config(const Arguments& arguments) : goal_velocity(arguments.real("goal_velocity", 0.0)) {}
    double goal_velocity;
  };

  static Spaces spaces(const Config&) {
    return {{box<float>({kLeft, -kSpeed}, {kRight, kSpeed})}, box<float>({-1.0}, {1.0})};
  }

  explicit MountainCarContinuous(const Config& config) : goal_velocity_(config.goal_velocity) {}

  void reset(Random& random, const double* options) {
    position_ = random.uniform(options[0], options[1]);
    velocity_ = 0.0;
    single_ = false;
  }

  // Gymnasium keeps the state in double precision after a reset and in single precision after a step.
  Step step(const Action* action, Random&) {
    const bool arrived = single_ ? move<float>(*action) : move<double>(*action);
    single_ = true;
    const double force = static_cast<double>(*action);
    return {(arrived ? 100.0 : 0.0) - force * force * 0.1, arrived};
  }

  template <class T>
  void observe(T* row) const {
    row[0] = static_cast<T>(position_);
    row[1] = static_cast<T>(velocity_);
  }

  template <class Archive>
  void archive(Archive& archive) {
    archive("position", position_);
    archive("velocity", velocity_);
    archive("single", single_);
  }

 private:
  static constexpr double kLeft = -1.2, kRight = 0.6, kSpeed = 0.07, kGoal = 0.45, kPower = 0.0015;

  // NumPy rounds a Python number to the precision of the NumPy number it meets; two Python numbers stay double.
  template <class T>
  bool move(float action) {
    auto position = static_cast<T>(position_);
    auto velocity = static_cast<T>(velocity_);
    const double slope = 0.0025 * std::cos(static_cast<double>(T{3} * position));
    if (action < -1.0F) {
      velocity += static_cast<T>(-1.0 * kPower - slope);
    } else if (action > 1.0F) {
      velocity += static_cast<T>(1.0 * kPower - slope);
    } else {
      velocity += static_cast<T>(action * static_cast<float>(kPower) - static_cast<float>(slope));
    }
    // A velocity at its bound is a Python number from here on, and meets the goal's in double precision.
    double exact_velocity = static_cast<double>(velocity);
    double exact_goal = static_cast<double>(static_cast<T>(goal_velocity_));
    const auto pin = [&](double bound) {
      velocity = static_cast<T>(bound);
      exact_velocity = bound;
      exact_goal = goal_velocity_;
    };
    if (velocity > static_cast<T>(kSpeed)) pin(kSpeed);
    if (velocity < static_cast<T>(-kSpeed)) pin(-kSpeed);
    position += velocity;
    if (position > static_cast<T>(kRight)) position = static_cast<T>(kRight);
    if (position < static_cast<T>(kLeft)) position = static_cast<T>(kLeft);
    if (position == static_cast<T>(kLeft) && velocity < 0) pin(0.0);
    position_ = static_cast<double>(static_cast<float>(position));
    velocity_ = static_cast<double>(static_cast<float>(velocity));
    return position >= static_cast<T>(kGoal) && exact_velocity >= exact_goal;
  }

  double position_ = 0.0, velocity_ = 0.0;
  double goal_velocity_;
  bool single_ = false;
};

}  // namespace raceway
