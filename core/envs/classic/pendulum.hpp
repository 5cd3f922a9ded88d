// A pendulum swung up and held by a bounded torque.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "../../env.hpp"
#include "../numpy_math.hpp"

namespace raceway {

struct Pendulum {
  static constexpr const char* kName = "Pendulum";
  static constexpr std::array kParameters{raceway_parameter{"g", RACEWAY_REAL, "10.0"}};
  static constexpr double kAny = std::numeric_limits<double>::max();
  static constexpr std::array kOptions{raceway_option{"x_init", std::numbers::pi, 0.0, kAny},
                                       raceway_option{"y_init", 1.0, 0.0, kAny}};
  using Scalar = float;
  using Action = float;
  static constexpr std::size_t kObsSize = 3, kActionSize = 1;

  struct Config {
    explicit Config(const Arguments& arguments) : g(arguments.real("g", 10.0)) {}
    double g;
  };

  static Spaces spaces(const Config&) {
    return {{box<float>({-1.0, -1.0, -kSpeed}, {1.0, 1.0, kSpeed})}, box<float>({-kTorque}, {kTorque})};
  }

  explicit Pendulum(const Config& config) : g_(config.g) {}

  void reset(Random& random, const double* options) {
    theta_ = random.uniform(-options[0], options[0]);
    theta_dot_ = random.uniform(-options[1], options[1]);
    pushed_ = false;
    torque_ = 0.0F;
  }

  Step step(const Action* action, Random&) {
    torque_ = std::clamp(*action, static_cast<float>(-kTorque), static_cast<float>(kTorque));
    pushed_ = true;
    // The torque's own terms are in single precision, as NumPy leaves them.
    const double cost = numpy::squared(upright(theta_)) + 0.1 * numpy::squared(theta_dot_) +
                        static_cast<double>(0.001F * numpy::squared(torque_));
    const double acceleration = 3 * g_ / 2.0 * std::sin(theta_) + static_cast<double>(3.0F * torque_);
    theta_dot_ = std::clamp(theta_dot_ + acceleration * kSeconds, -kSpeed, kSpeed);
    theta_ = theta_ + theta_dot_ * kSeconds;
    return {-cost, false};
  }

  template <class T>
  void observe(T* row) const {
    row[0] = static_cast<T>(std::cos(theta_));
    row[1] = static_cast<T>(std::sin(theta_));
    row[2] = static_cast<T>(theta_dot_);
  }

  template <class Archive>
  void archive(Archive& archive) {
    archive("theta", theta_);
    archive("theta_dot", theta_dot_);
    archive("torque", torque_, Within{-kTorque, kTorque});
    archive("pushed", pushed_);
  }

 private:
  static constexpr double kSpeed = 8.0, kTorque = 2.0, kSeconds = 0.05;

  static double upright(double angle) {
    return numpy::remainder(angle + std::numbers::pi, 2 * std::numbers::pi) - std::numbers::pi;
  }

  double theta_ = 0.0, theta_dot_ = 0.0;
  double g_;
  float torque_ = 0.0F;  // the last one, for drawing
  bool pushed_ = false;
};

}  // namespace raceway
