// An environment that does as it is told: ends, fails, waits, throws while it is made. And a pool with its memory.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "adapter.hpp"
#include "pool.hpp"

namespace raceway::test {

inline std::atomic<int> live_envs{0};            // constructed and not destroyed
inline std::atomic<int> constructions_left{-1};  // then one throws; negative: none does

template <class S>
struct Scripted {
  static constexpr const char* kName = "Scripted";
  static constexpr std::array kParameters{
      raceway_parameter{"length", RACEWAY_INTEGER, "0"},         // terminates after so many steps; 0: never
      raceway_parameter{"fail_at", RACEWAY_INTEGER, "0"},        // throws in this step of an episode; 0: never
      raceway_parameter{"fail_in_reset", RACEWAY_INTEGER, "0"},  // throws in this reset
      raceway_parameter{"memory", RACEWAY_INTEGER, "3"},         // numbers that its state holds
      raceway_parameter{"delay_us", RACEWAY_REAL, "0.0"},        // a step sleeps up to so long
      raceway_parameter{"refused", RACEWAY_FLAG, "False"},
  };
  static constexpr std::array kOptions{any_number("start", 0.0)};
  using Scalar = S;
  using Action = std::int64_t;
  static constexpr std::size_t kObsSize = 3, kActionSize = 1;

  struct Config {
    explicit Config(const Arguments& arguments)
        : length(arguments.integer("length", 0)),
          fail_at(arguments.integer("fail_at", 0)),
          fail_in_reset(arguments.integer("fail_in_reset", 0)),
          memory(static_cast<std::size_t>(arguments.integer("memory", 3))),
          delay_us(arguments.real("delay_us", 0.0)) {
      if (arguments.flag("refused", false)) throw std::invalid_argument("refused=True is refused.");
    }
    std::int64_t length, fail_at, fail_in_reset;
    std::size_t memory;
    double delay_us;
  };

  static Spaces spaces(const Config&) {
    return {
        {box<S>({0, 0, 0}, {1e9, 1e9, 1e9})}, discrete(100), {entry<std::int64_t>("steps"), entries<float>("pair", 2)}};
  }

  explicit Scripted(const Config& config) : config_(&config), memory_(config.memory) {
    if (constructions_left.load() >= 0 && constructions_left.fetch_sub(1) == 0) {
      throw std::runtime_error("it cannot be made");
    }
    live_envs.fetch_add(1);
  }
  Scripted(const Scripted&) = delete;
  Scripted& operator=(const Scripted&) = delete;
  ~Scripted() { live_envs.fetch_sub(1); }

  void reset(Random& random, const double* options) {
    if (++resets_ == config_->fail_in_reset) throw std::runtime_error("scripted failure in reset");
    steps_ = 0;
    sum_ = options[0];
    for (double& number : memory_) number = random.uniform();
  }

  Step step(const Action* action, Random& random) {
    ++steps_;
    if (steps_ == config_->fail_at) throw std::runtime_error("scripted failure");
    sum_ += static_cast<double>(*action);
    memory_[static_cast<std::size_t>(steps_) % memory_.size()] = random.uniform();
    if (config_->delay_us > 0) {
      std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(config_->delay_us * random.uniform()));
    }
    return {static_cast<double>(*action), steps_ == config_->length};
  }

  template <class T>
  void observe(T* row) const {
    row[0] = static_cast<T>(steps_);
    row[1] = static_cast<T>(sum_);
    row[2] = static_cast<T>(memory_[0]);
  }

  void info(InfoRow row) const {
    *row.entry<std::int64_t>(0) = steps_;
    row.entry<float>(1, 2)[0] = static_cast<float>(sum_);
    row.entry<float>(1, 2)[1] = -static_cast<float>(sum_);
  }

  template <class Archive>
  void archive(Archive& archive) {
    archive("steps", steps_, Within{0});
    archive("sum", sum_);
    archive("memory", memory_);
    archive("resets", resets_);
  }

 private:
  const Config* config_;
  std::int64_t steps_ = 0;
  double sum_ = 0.0;
  std::vector<double> memory_;
  std::int64_t resets_ = 0;
};

inline raceway_value integer(const char* name, std::int64_t value) {
  raceway_value result{};
  result.name = name;
  result.integer = value;
  return result;
}

inline raceway_value real(const char* name, double value) {
  raceway_value result{};
  result.name = name;
  result.real = value;
  return result;
}

using Values = std::vector<raceway_value>;

// A pool of scripted environments with memory for its rows. Environment i is seeded with i.
template <class S = float>
class Rig {
 public:
  // `odd_one`: other arguments for one environment.
  Rig(Pool::Settings settings, const Values& values = {}, int odd_one = -1, const Values& odd_values = {},
      std::int32_t limit = 0)
      : pool(*Adapter<Scripted<S>>::table(), configurations(settings.num_envs, values, odd_one, odd_values),
             std::vector<std::int32_t>(settings.num_envs, limit), settings),
        full(pool.full_rows().bytes()),
        some(pool.batch_rows().bytes()),
        rows(pool.full_rows().bind(full.data())),
        batch(pool.batch_rows().bind(some.data())) {
    for (std::uint32_t i = 0; i < settings.num_envs; ++i) pool.random(i) = seeded({&i, 1});
  }

  void act(std::size_t env, std::int64_t action) { static_cast<std::int64_t*>(pool.actions())[env] = action; }
  void act(std::int64_t action) {
    for (std::size_t env = 0; env < pool.settings().num_envs; ++env) act(env, action);
  }
  void reset(const std::vector<std::uint8_t>& mask = {}, const double* options = nullptr) {
    pool.reset(full.data(), mask.empty() ? nullptr : mask.data(), options);
  }
  void step(std::int64_t action = 1) {
    act(action);
    pool.step(full.data());
  }
  void send(const std::vector<std::size_t>& envs) {
    pool.check_sendable(envs);
    pool.send(envs);
  }
  bool recv(std::chrono::milliseconds limit = std::chrono::seconds(20), bool others_may_send = false) {
    return pool.recv(some.data(), Clock::now() + limit, others_may_send);
  }

  // Of the last reset or step, and of the last recv.
  S obs(std::size_t env, std::size_t element) const { return static_cast<S*>(rows.obs)[3 * env + element]; }
  S final_obs(std::size_t env, std::size_t element) const { return static_cast<S*>(rows.final_obs)[3 * env + element]; }
  S batch_obs(std::size_t row, std::size_t element) const { return static_cast<S*>(batch.obs)[3 * row + element]; }
  std::vector<std::size_t> received() const {
    const std::int64_t* ids = pool.batch_rows().env_ids(some.data());
    return {ids, ids + pool.settings().batch_size};
  }

  Pool pool;
  Memory full, some;
  raceway_batch rows, batch;

 private:
  static std::vector<Configuration> configurations(std::size_t n, const Values& values, int odd_one,
                                                   const Values& odd_values) {
    const raceway_table& table = *Adapter<Scripted<S>>::table();
    std::vector<Configuration> result(n, configure(table, values));
    if (odd_one >= 0) result[static_cast<std::size_t>(odd_one)] = configure(table, odd_values);
    return result;
  }
};

inline Pool::Settings settings(std::size_t num_envs, std::size_t batch_size, int workers,
                               raceway_autoreset autoreset = RACEWAY_NEXT_STEP, bool record_episodes = false) {
  return {num_envs, batch_size, workers, autoreset, record_episodes, false};
}

}  // namespace raceway::test
