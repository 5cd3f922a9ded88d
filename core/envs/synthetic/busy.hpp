// Does nothing but take time: for measuring pools and schedules.
#pragma once

#include <chrono>
#include <cmath>
#include <thread>

#include "../../env.hpp"

namespace raceway {

struct Busy {
  static constexpr const char* kName = "Busy";
  static constexpr std::array kParameters{
      raceway_parameter{"step_us", RACEWAY_REAL, "20.0"},
      raceway_parameter{"spread", RACEWAY_TEXT, "'constant'"},
      raceway_parameter{"wait", RACEWAY_FLAG, "False"},
      raceway_parameter{"rounds_per_us", RACEWAY_REAL, "0.0"},
  };
  static constexpr std::array<raceway_option, 0> kOptions{};
  using Scalar = float;
  using Action = std::int64_t;
  static constexpr std::size_t kObsSize = 1, kActionSize = 1;

  struct Config {
    explicit Config(const Arguments& arguments)
        : step_us(arguments.real("step_us", 20.0)),
          wait(arguments.flag("wait", false)),
          rounds_per_us(arguments.real("rounds_per_us", 0.0)) {
      if (!(step_us >= 0.0 && step_us <= 1e7)) {
        throw std::invalid_argument("step_us=" + std::to_string(step_us) + " is not a time from 0 to 10 seconds.");
      }
      const std::string spread = arguments.text("spread").value_or("constant");
      if (spread != "constant" && spread != "exponential") {
        throw std::invalid_argument("no spread '" + spread + "'. Use 'constant' or 'exponential'.");
      }
      exponential = spread == "exponential";
      if (!(rounds_per_us >= 0.0 && rounds_per_us <= 1e6)) {
        throw std::invalid_argument("rounds_per_us=" + std::to_string(rounds_per_us) +
                                    " is not from 0 (measure it) to a million.");
      }
      if (rounds_per_us == 0.0) rounds_per_us = measured_rate();
    }
    double step_us;
    bool wait, exponential = false;
    double rounds_per_us;  // how much arithmetic is a microsecond; 0: measured once per process
  };

  static Spaces spaces(const Config&) { return {{box<float>({0.0}, {1.0})}, discrete(2), {}}; }

  explicit Busy(const Config& config) : config_(config) {}

  void reset(Random& random, const double*) { value_ = random.uniform(); }

  Step step(const Action*, Random& random) {
    const double us = config_.exponential ? -config_.step_us * std::log1p(-random.uniform()) : config_.step_us;
    if (config_.wait) {
      std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(us));
    } else {
      value_ = work(value_, static_cast<std::int64_t>(us * config_.rounds_per_us));
    }
    return {1.0, false};
  }

  template <class T>
  void observe(T* row) const {
    *row = static_cast<T>(value_);
  }

  template <class Archive>
  void archive(Archive& archive) {
    archive("value", value_);
  }

 private:
  // A fixed amount of arithmetic, not a wait for the clock: a thread that is not on a CPU must not get its work done.
  static double work(double value, std::int64_t rounds) {
    for (std::int64_t i = 0; i < rounds; ++i) value = 3.9 * value * (1.0 - value);
    return value;
  }

  static double measured_rate() {
    static const double kRate = [] {
      double best = 0.0;
      volatile double sink = 0.3;
      for (int trial = 0; trial < 5; ++trial) {
        const auto start = std::chrono::steady_clock::now();
        sink = work(sink, 100000);
        const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
        best = std::max(best, 100000 / took.count());
      }
      return best;
    }();
    return kRate;
  }

  Config config_;
  double value_ = 0.0;
};

}  // namespace raceway
