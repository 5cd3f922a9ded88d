// Two links swung up by a torque at the elbow (Sutton 1996), the book's equations, one Runge-Kutta step of 0.2 s.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "../../env.hpp"
#include "../numpy_math.hpp"

namespace raceway {

struct Acrobot {
  static constexpr const char* kName = "Acrobot";
  static constexpr std::array<raceway_parameter, 0> kParameters{};
  static constexpr std::array kOptions{any_number("low", -0.1), any_number("high", 0.1)};
  using Scalar = float;
  using Action = std::int64_t;
  static constexpr std::size_t kObsSize = 6, kActionSize = 1;

  struct Config {
    explicit Config(const Arguments&) {}
  };

  static Spaces spaces(const Config&) {
    return {{box<float>({-1, -1, -1, -1, -kSpeed1, -kSpeed2}, {1, 1, 1, 1, kSpeed1, kSpeed2})}, discrete(3)};
  }

  explicit Acrobot(const Config&) {}

  // The state after a reset is in single precision, and so are the sines and cosines of its observation.
  void reset(Random& random, const double* options) {
    for (double& value : state_) {
      value = static_cast<double>(static_cast<float>(random.uniform(options[0], options[1])));
    }
    single_ = true;
  }

  Step step(const Action* action, Random&) {
    state_ = runge_kutta(state_, static_cast<double>(*action - 1));
    state_[0] = wrap(state_[0]);
    state_[1] = wrap(state_[1]);
    state_[2] = std::min(std::max(state_[2], -kSpeed1), kSpeed1);
    state_[3] = std::min(std::max(state_[3], -kSpeed2), kSpeed2);
    single_ = false;
    const bool up = -std::cos(state_[0]) - std::cos(state_[1] + state_[0]) > 1.0;
    return {up ? 0.0 : -1.0, up};
  }

  template <class T>
  void observe(T* row) const {
    for (std::size_t link = 0; link < 2; ++link) {
      const double angle = state_[link];
      if (single_) {
        row[2 * link] = static_cast<T>(numpy::cos(static_cast<float>(angle)));
        row[2 * link + 1] = static_cast<T>(numpy::sin(static_cast<float>(angle)));
      } else {
        row[2 * link] = static_cast<T>(std::cos(angle));
        row[2 * link + 1] = static_cast<T>(std::sin(angle));
      }
      row[4 + link] = static_cast<T>(state_[2 + link]);
    }
  }

  template <class Archive>
  void archive(Archive& archive) {
    archive("state", state_);
    archive("single", single_);
  }

 private:
  using State = std::array<double, 4>;
  static constexpr double kPi = std::numbers::pi;
  static constexpr double kSpeed1 = 4 * kPi, kSpeed2 = 9 * kPi;

  static State derivative(const State& state, double torque) {
    const auto& [theta1, theta2, dtheta1, dtheta2] = state;
    const double cosine2 = std::cos(theta2);
    const double sine2 = std::sin(theta2);
    // Unit masses, lengths and inertias, centres of mass at one half: the constants left are 0.5, 0.25, 1 and 9.8.
    const double d1 = 0.25 + (1.25 + cosine2) + 1.0 + 1.0;
    const double d2 = (0.25 + 0.5 * cosine2) + 1.0;
    const double phi2 = 0.5 * 9.8 * std::cos(theta1 + theta2 - kPi / 2.0);
    const double phi1 = -0.5 * numpy::squared(dtheta2) * sine2 - dtheta2 * dtheta1 * sine2 +
                        1.5 * 9.8 * std::cos(theta1 - kPi / 2) + phi2;
    const double ddtheta2 =
        (torque + d2 / d1 * phi1 - 0.5 * numpy::squared(dtheta1) * sine2 - phi2) / (1.25 - numpy::squared(d2) / d1);
    const double ddtheta1 = -(d2 * ddtheta2 + phi1) / d1;
    return {dtheta1, dtheta2, ddtheta1, ddtheta2};
  }

  static State moved(const State& start, double seconds, const State& slope) {
    State result;
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = start[i] + seconds * slope[i];
    return result;
  }

  static State runge_kutta(const State& start, double torque) {
    constexpr double kSeconds = 0.2;
    const State k1 = derivative(start, torque);
    const State k2 = derivative(moved(start, kSeconds / 2.0, k1), torque);
    const State k3 = derivative(moved(start, kSeconds / 2.0, k2), torque);
    const State k4 = derivative(moved(start, kSeconds, k3), torque);
    State sum;
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = ((k1[i] + 2 * k2[i]) + 2 * k3[i]) + k4[i];
    return moved(start, kSeconds / 6.0, sum);
  }

  // Gymnasium walks by full turns, and from very far away never arrives.
  static double wrap(double angle) {
    if (std::fabs(angle) > 1e7) angle = std::fmod(angle, 2 * kPi);
    while (angle > kPi) angle -= 2 * kPi;
    while (angle < -kPi) angle += 2 * kPi;
    return angle;
  }

  State state_{};
  bool single_ = false;
};

}  // namespace raceway
