// What holds for every built-in task. That they equal Gymnasium's is checked from Python.
#include <cstring>
#include <limits>
#include <map>

#include "check.hpp"
#include "pool.hpp"
#include "table_loop.hpp"
#include "tasks.hpp"

using namespace raceway;

namespace {

// The keyword arguments of a task's preset, and what keeps the synthetic task short.
class Preset {
 public:
  explicit Preset(const Task& task) {
    for (const auto& [name, written] : task.preset) add(kind_of(task, name), name, written);
    for (std::size_t i = 0; i < task.table->num_parameters; ++i) {
      const raceway_parameter& parameter = task.table->parameters[i];
      if (parameter.kind != RACEWAY_FILE) continue;
      const std::string file = parameter.default_repr;
      add(RACEWAY_FILE, parameter.name,
          "'" RACEWAY_MODELS "/" + (file == "None" ? "ant.xml" : file.substr(1, file.size() - 2)) + "'");
    }
    if (std::strcmp(task.id, "Busy-v0") == 0) {
      values_.push_back({"step_us", 0, 2.0, nullptr, 0, nullptr});
      values_.push_back({"rounds_per_us", 0, 50.0, nullptr, 0, nullptr});
    }
  }
  Configuration configured(const raceway_table& table) const { return configure(table, values_); }
  const std::vector<raceway_value>& values() const { return values_; }

 private:
  static std::int32_t kind_of(const Task& task, const std::string& name) {
    for (std::size_t i = 0; i < task.table->num_parameters; ++i) {
      if (name == task.table->parameters[i].name) return task.table->parameters[i].kind;
    }
    check::fail(__FILE__, __LINE__, std::string(task.id) + " presets " + name + ", which it does not take");
    return RACEWAY_TEXT;
  }
  void add(std::int32_t kind, const char* name, const std::string& written) {
    raceway_value value{};
    value.name = name;
    if (kind == RACEWAY_FLAG) {
      value.integer = written == "True";
    } else {
      texts_[name] = written.substr(1, written.size() - 2);  // without its quotes
      value.text = texts_[name].c_str();
    }
    values_.push_back(value);
  }

  std::map<std::string, std::string> texts_;
  std::vector<raceway_value> values_;
};

// A simulated step takes a hundred times as long as one of the other tasks, so they are given fewer.
int fewer(const Task& task, int steps) {
  for (std::size_t i = 0; i < task.table->num_parameters; ++i) {
    if (task.table->parameters[i].kind == RACEWAY_FILE) return std::max(steps / 20, 10);
  }
  return steps;
}

// A random action within the space; the generator is the test's own.
void write_action(const raceway_column& column, void* actions, std::size_t env, Random& random) {
  if (column.space == RACEWAY_DISCRETE) {
    static_cast<std::int64_t*>(actions)[env] = random.below(static_cast<std::uint32_t>(column.discrete_n));
    return;
  }
  for (std::size_t i = 0; i < elements_of(column); ++i) {
    static_cast<float*>(actions)[env * elements_of(column) + i] =
        static_cast<float>(random.uniform(column.low[i], column.high[i]));
  }
}

class Hash {
 public:
  void add(const void* bytes, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) sum_ = (sum_ ^ static_cast<const std::uint8_t*>(bytes)[i]) * 0x100000001b3;
  }
  std::uint64_t sum() const { return sum_; }

 private:
  std::uint64_t sum_ = 0xcbf29ce484222325;
};

struct TaskRun {
  TaskRun(const Task& task, std::size_t num_envs, int workers, raceway_autoreset mode)
      : preset(task),
        pool(*task.table, std::vector<Configuration>(num_envs, preset.configured(*task.table)),
             std::vector<std::int32_t>(num_envs, static_cast<std::int32_t>(task.max_episode_steps)),
             {num_envs, num_envs, workers, mode, true, false}),
        memory(pool.full_rows().bytes()),
        rows(pool.full_rows().bind(memory.data())) {
    for (std::uint32_t i = 0; i < num_envs; ++i) pool.random(i) = seeded({&i, 1});
    const std::uint32_t seed = 99;
    action_storage = seeded({&seed, 1});
    pool.reset(memory.data(), nullptr, nullptr);
  }

  void step() {
    const std::size_t n = pool.settings().num_envs;
    if (pool.settings().autoreset == RACEWAY_DISABLED) {
      std::vector<std::uint8_t> ended(n);
      for (std::size_t i = 0; i < n; ++i) ended[i] = pool.episode(i).status == RACEWAY_ENDED;
      if (std::find(ended.begin(), ended.end(), 1) != ended.end()) pool.reset(memory.data(), ended.data(), nullptr);
    }
    Random random(action_storage);
    for (std::size_t i = 0; i < n; ++i) write_action(pool.layout().action, pool.actions(), i, random);
    pool.step(memory.data());
  }

  void add_to(Hash& hash) const {
    const raceway_layout& layout = pool.layout();
    const std::size_t n = pool.settings().num_envs;
    std::size_t obs_bytes = 0;
    for (std::size_t i = 0; i < layout.num_obs; ++i) obs_bytes += bytes_of(layout.obs[i]);
    hash.add(rows.obs, n * obs_bytes);
    hash.add(rows.reward, n * sizeof(double));
    hash.add(rows.terminated, n);
    hash.add(rows.truncated, n);
    for (std::size_t i = 0; i < layout.num_info; ++i) hash.add(rows.info[i], n * bytes_of(layout.info[i]));
    for (std::size_t i = 0; i < n; ++i) {
      if (!rows.terminated[i] && !rows.truncated[i]) continue;
      hash.add(rows.episode_return + i, sizeof(double));
      hash.add(rows.episode_length + i, sizeof(std::int64_t));
      if (rows.final_obs) hash.add(static_cast<char*>(rows.final_obs) + i * obs_bytes, obs_bytes);
    }
  }

  Preset preset;
  Pool pool;
  Memory memory;
  raceway_batch rows;
  raceway_random action_storage{};
};

// Numbers at the far ends of what a column can hold.
std::vector<std::vector<char>> extremes(std::int32_t dtype) {
  const auto bytes = [](auto value) {
    std::vector<char> result(sizeof value);
    std::memcpy(result.data(), &value, sizeof value);
    return result;
  };
  using Limits = std::numeric_limits<std::int64_t>;
  switch (dtype) {
    case RACEWAY_INT64:
      return {bytes(Limits::max()), bytes(Limits::min()), bytes(std::int64_t{-1}), bytes(std::int64_t{1} << 32)};
    case RACEWAY_FLOAT64:
      return {bytes(1e300), bytes(-1e300), bytes(std::numeric_limits<double>::quiet_NaN()),
              bytes(std::numeric_limits<double>::infinity())};
    case RACEWAY_FLOAT32:
      return {bytes(3e38F), bytes(std::numeric_limits<float>::quiet_NaN())};
    default:
      return {{static_cast<char>(0xff)}, {2}};
  }
}

}  // namespace

CASE("every table is of this version and describes itself") {
  for (const Task& task : tasks()) {
    const raceway_table& table = *task.table;
    CHECK_EQUAL(table.version, static_cast<std::uint32_t>(RACEWAY_TABLE_VERSION));
    CHECK_EQUAL(table.table_size, static_cast<std::uint32_t>(sizeof(raceway_table)));
    CHECK(table.env_size > 0 && table.env_size % table.env_align == 0 && table.env_align <= kCacheLine);
    CHECK(std::strncmp(table.name, task.id, std::strlen(table.name)) == 0);
    const Configuration configuration = Preset(task).configured(table);
    const raceway_layout& layout = *table.layout(configuration.get());
    CHECK(layout.num_obs > 0 && layout.num_state > 0);
    for (std::size_t i = 0; i < layout.num_obs; ++i) CHECK_EQUAL(layout.obs[i].dtype, layout.obs[0].dtype);
    CHECK(layout.action.space == RACEWAY_DISCRETE ? layout.action.discrete_n > 1 : layout.action.low != nullptr);
  }
}

CASE("every task gives the same rows for any number of workers, in every autoreset mode") {
  for (const Task& task : tasks()) {
    for (const auto mode : {RACEWAY_NEXT_STEP, RACEWAY_SAME_STEP, RACEWAY_DISABLED}) {
      std::vector<std::uint64_t> sums;
      for (int workers = 1; workers <= 4; ++workers) {
        TaskRun run(task, static_cast<std::size_t>(fewer(task, 96)), workers, mode);
        Hash hash;
        run.add_to(hash);
        for (int step = 0; step < fewer(task, 120); ++step) {
          run.step();
          run.add_to(hash);
        }
        sums.push_back(hash.sum());
      }
      for (const std::uint64_t sum : sums) CHECK_EQUAL(sum, sums[0]);
    }
  }
}

CASE("every task runs for thousands of steps, and its episodes end") {
  for (const Task& task : tasks()) {
    TaskRun run(task, 4, 2, RACEWAY_NEXT_STEP);
    int ends = 0;
    const int steps = fewer(task, 3000);
    for (int step = 0; step < steps; ++step) {
      run.step();
      for (std::size_t i = 0; i < 4; ++i) ends += run.rows.terminated[i] || run.rows.truncated[i];
    }
    if (task.max_episode_steps > 0) CHECK(ends >= 4 * (steps / static_cast<int>(task.max_episode_steps + 1)));
  }
}

CASE("every task goes on from a saved state as it did the first time") {
  for (const Task& task : tasks()) {
    TaskRun run(task, 3, 1, RACEWAY_SAME_STEP);
    for (int step = 0; step < 30; ++step) run.step();
    std::vector<std::vector<char>> states(3, std::vector<char>(run.pool.state_bytes()));
    std::vector<raceway_random> randoms;
    std::vector<raceway_episode> episodes;
    for (std::size_t i = 0; i < 3; ++i) {
      run.pool.save(i, states[i].data());
      randoms.push_back(run.pool.random(i));
      episodes.push_back(run.pool.episode(i));
    }
    const raceway_random actions = run.action_storage;
    std::vector<std::uint64_t> sums;
    for (int attempt = 0; attempt < 2; ++attempt) {
      for (std::size_t i = 0; i < 3; ++i) {
        run.pool.load(i, states[i].data());
        run.pool.random(i) = randoms[i];
        run.pool.episode(i) = episodes[i];
      }
      run.pool.states_changed();
      run.action_storage = actions;
      Hash hash;
      for (int step = 0; step < fewer(task, 100); ++step) {
        run.step();
        hash.add(run.rows.obs, 3 * bytes_of(run.pool.layout().obs[0]));
        hash.add(run.rows.reward, 3 * sizeof(double));
      }
      sums.push_back(hash.sum());
    }
    CHECK_EQUAL(sums[0], sums[1]);
  }
}

CASE("a state with one absurd number is refused or harmless") {
  for (const Task& task : tasks()) {
    TaskRun run(task, 1, 1, RACEWAY_NEXT_STEP);
    std::vector<char> before(run.pool.state_bytes());
    run.pool.save(0, before.data());
    std::size_t offset = 0;
    for (std::size_t column = 0; column < run.pool.layout().num_state; ++column) {
      const raceway_column& part = run.pool.layout().state[column];
      for (const std::vector<char>& extreme : extremes(part.dtype)) {
        std::vector<char> state = before;
        std::copy(extreme.begin(), extreme.end(), state.begin() + static_cast<std::ptrdiff_t>(offset));
        try {
          run.pool.load(0, state.data());
          run.pool.episode(0).status = RACEWAY_RUNNING;
          for (int step = 0; step < 10; ++step) run.step();
        } catch (const std::invalid_argument&) {
          continue;
        }
      }
      offset += bytes_of(part);
    }
  }
}

CASE("a state of any bytes is refused or harmless, and a refused one leaves everything as it was") {
  const std::uint32_t seed = 5;
  raceway_random storage = seeded({&seed, 1});
  Random random(storage);
  for (const Task& task : tasks()) {
    TaskRun run(task, 2, 1, RACEWAY_SAME_STEP);
    std::vector<char> sound(run.pool.state_bytes()), before(sound.size()), after(sound.size());
    run.pool.save(0, sound.data());
    int taken = 0;
    for (std::size_t attempt = 0; attempt < static_cast<std::size_t>(fewer(task, 2000)); ++attempt) {
      std::vector<char> state = sound;
      std::size_t offset = 0;
      for (std::size_t column = 0; column < run.pool.layout().num_state; ++column) {
        const raceway_column& part = run.pool.layout().state[column];
        const std::size_t size = size_of(part.dtype);
        const auto choices = extremes(part.dtype);
        for (std::size_t i = 0; i < elements_of(part); ++i, offset += size) {
          switch (random.below(column == attempt % run.pool.layout().num_state ? 3 : 20)) {
            case 0:
              for (std::size_t byte = 0; byte < size; ++byte) state[offset + byte] = static_cast<char>(random.bits32());
              break;
            case 1:
              std::memcpy(state.data() + offset,
                          choices[random.below(static_cast<std::uint32_t>(choices.size()))].data(), size);
              break;
            default:  // stays
              break;
          }
        }
      }
      run.pool.save(0, before.data());
      try {
        run.pool.load(0, state.data());
      } catch (const std::invalid_argument& refusal) {
        CHECK(std::string(refusal.what()).find("environment 0 is refused: ") != std::string::npos);
        run.pool.save(0, after.data());
        CHECK(before == after);
        continue;
      }
      ++taken;
      run.pool.episode(0).status = RACEWAY_RUNNING;
      run.pool.observe(run.memory.data());
      for (int step = 0; step < 3; ++step) run.step();
      run.pool.load(0, sound.data());
    }
    CHECK(taken > 0);
  }
}

CASE("the loop through the table runs every task, with any number of threads") {
  for (const Task& task : tasks()) {
    const Preset preset(task);
    const Configuration configuration = preset.configured(*task.table);
    const raceway_column& column = task.table->layout(configuration.get())->action;
    constexpr std::size_t kEnvs = 5;
    const auto steps = static_cast<std::size_t>(fewer(task, 300));
    std::vector<char> actions(kEnvs * steps * bytes_of(column));
    const std::uint32_t seed = 1;
    raceway_random storage = seeded({&seed, 1});
    Random random(storage);
    for (std::size_t i = 0; i < kEnvs * steps; ++i) write_action(column, actions.data(), i, random);
    for (const int threads : {1, 2, 7}) {
      const BareRun run{kEnvs, steps, threads, task.max_episode_steps, 0, actions.data()};
      CHECK(table_loop(*task.table, configure(*task.table, preset.values()).get(), run) > 0.0);
    }
  }
}
