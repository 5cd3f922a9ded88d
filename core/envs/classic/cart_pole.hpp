// A pole balanced on a cart (Barto, Sutton and Anderson 1983), integrated as Gymnasium does.
#pragma once

#include <cmath>
#include <limits>
#include <numbers>

#include "../../env.hpp"

namespace raceway {

struct CartPole {
  static constexpr const char* kName = "CartPole";
  static constexpr std::array kParameters{raceway_parameter{"sutton_barto_reward", RACEWAY_FLAG, "False"}};
  static constexpr std::array kOptions{any_number("low", -0.05), any_number("high", 0.05)};
  using Scalar = float;
  using Action = std::int64_t;
  static constexpr std::size_t kObsSize = 4, kActionSize = 1;

  struct Config {
    explicit Config(const Arguments& arguments) : sutton_barto(arguments.flag("sutton_barto_reward", false)) {}
    bool sutton_barto;
  };

  static Spaces spaces(const Config&) {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    const std::vector<double> high{kTrack * 2, kInf, kFall * 2, kInf};
    return {{box<float>({-high[0], -kInf, -high[2], -kInf}, high)}, discrete(2)};
  }

  explicit CartPole(const Config& config) : sutton_barto_(config.sutton_barto) {}

  void reset(Random& random, const double* options) {
    for (double& value : state_) value = random.uniform(options[0], options[1]);
  }

  Step step(const Action* action, Random&) {
    auto& [x, x_dot, theta, theta_dot] = state_;
    const double force = *action == 1 ? 10.0 : -10.0;
    const double cosine = std::cos(theta);
    const double sine = std::sin(theta);
    const double push = (force + kPoleMoment * (theta_dot * theta_dot) * sine) / kTotalMass;
    const double theta_acc =
        (9.8 * sine - cosine * push) / (0.5 * (4.0 / 3.0 - kPoleMass * (cosine * cosine) / kTotalMass));
    const double x_acc = push - kPoleMoment * theta_acc * cosine / kTotalMass;
    x = x + kSeconds * x_dot;
    x_dot = x_dot + kSeconds * x_acc;
    theta = theta + kSeconds * theta_dot;
    theta_dot = theta_dot + kSeconds * theta_acc;
    const bool fell = x < -kTrack || x > kTrack || theta < -kFall || theta > kFall;
    return {sutton_barto_ ? (fell ? -1.0 : 0.0) : 1.0, fell};
  }

  template <class T>
  void observe(T* row) const {
    for (std::size_t i = 0; i < kObsSize; ++i) row[i] = static_cast<T>(state_[i]);
  }

  template <class Archive>
  void archive(Archive& archive) {
    archive("state", state_);
  }

 private:
  static constexpr double kPoleMass = 0.1;
  static constexpr double kTotalMass = kPoleMass + 1.0;
  static constexpr double kPoleMoment = kPoleMass * 0.5;
  static constexpr double kSeconds = 0.02;
  static constexpr double kTrack = 2.4;
  static constexpr double kFall = 12 * 2 * std::numbers::pi / 360;

  std::array<double, 4> state_{};
  bool sutton_barto_;
};

}  // namespace raceway
