// An underpowered car between two hills (Moore 1990), three discrete pushes.
#pragma once

#include <algorithm>
#include <cmath>

#include "../../env.hpp"

namespace raceway {

struct MountainCar {
  static constexpr const char* kName = "MountainCar";
  static constexpr std::array kParameters{raceway_parameter{"goal_velocity", RACEWAY_REAL, "0"}};
  static constexpr std::array kOptions{any_number("low", -0.6), any_number("high", -0.4)};
  using Scalar = float;
  using Action = std::int64_t;
  static constexpr std::size_t kObsSize = 2, kActionSize = 1;

  struct Config {
    explicit Config(const Arguments& arguments) : goal_velocity(arguments.real("goal_velocity", 0.0)) {}
    double goal_velocity;
  };

  static Spaces spaces(const Config&) { return {{box<float>({kLeft, -kSpeed}, {kRight, kSpeed})}, discrete(3)}; }

  explicit MountainCar(const Config& config) : goal_velocity_(config.goal_velocity) {}

  void reset(Random& random, const double* options) {
    position_ = random.uniform(options[0], options[1]);
    velocity_ = 0.0;
  }

  Step step(const Action* action, Random&) {
    velocity_ += static_cast<double>(*action - 1) * 0.001 + std::cos(3 * position_) * (-0.0025);
    velocity_ = std::clamp(velocity_, -kSpeed, kSpeed);
    position_ += velocity_;
    position_ = std::clamp(position_, kLeft, kRight);
    if (position_ == kLeft && velocity_ < 0) velocity_ = 0;
    return {-1.0, position_ >= 0.5 && velocity_ >= goal_velocity_};
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
  }

 private:
  static constexpr double kLeft = -1.2, kRight = 0.6, kSpeed = 0.07;

  double position_ = 0.0, velocity_ = 0.0;
  double goal_velocity_;
};

}  // namespace raceway
