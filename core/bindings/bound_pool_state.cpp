// The state of a pool as arrays, and back.
#include <cstring>

#include "../adapter.hpp"
#include "bound_pool.hpp"

namespace raceway::python {
namespace {

// What cannot be about a generator and an episode, as save() writes them; empty if nothing is wrong.
std::string flaw_of(const std::uint64_t* words, const std::int64_t* numbers, std::int64_t ended) {
  const auto outside = [](const char* name, auto value, const char* wanted) {
    return std::string(name) + " is " + std::to_string(value) + ", not " + wanted;
  };
  if ((words[3] & 1) == 0) return outside("random.increment_low", words[3], "odd");
  if (words[4] > 1) return outside("random.has_half", words[4], "0 or 1");
  if (words[5] >> 32 != 0) return outside("random.half", words[5], "a number of 32 bits");
  static constexpr const char* kCounts[4] = {"episode.steps", "episode.number", "episode.status", "episode.faults"};
  for (const int i : {0, 1, 3}) {
    if (numbers[i] < 0 || numbers[i] >= std::int64_t{1} << 62) return outside(kCounts[i], numbers[i], "a count");
  }
  if (numbers[2] >= RACEWAY_FRESH && numbers[2] <= ended) return "";
  return outside(kCounts[2], numbers[2],
                 ended == RACEWAY_ENDED ? "0, 1 or 2" : "0 or 1, with autoreset in the same step");
}

// All or nothing: a state that is refused leaves every environment as it was.
void load_rows(Pool& pool, const char* rows) {
  const std::size_t n = pool.settings().num_envs, bytes = pool.state_bytes();
  std::vector<char> before(n * bytes);
  for (std::size_t i = 0; i < n; ++i) pool.save(i, before.data() + i * bytes);
  for (std::size_t i = 0; i < n; ++i) {
    try {
      pool.load(i, rows + i * bytes);
    } catch (const std::invalid_argument&) {
      for (std::size_t j = 0; j < i; ++j) pool.load(j, before.data() + j * bytes);
      throw;
    }
  }
}

}  // namespace

nb::tuple BoundPool::save() {
  const Pool::Turn turn(*pool_, true, true);
  recover();
  pool_->require_idle("state()");
  const std::size_t n = pool_->settings().num_envs;
  void *rows = nullptr, *random = nullptr, *counts = nullptr, *sums = nullptr;
  nb::object row_array = new_array(RACEWAY_UINT8, n, pool_->state_bytes(), &rows);
  nb::object random_array = new_array(RACEWAY_INT64, n, 6, &random);
  nb::object count_array = new_array(RACEWAY_INT64, n, 4, &counts);
  nb::object sum_array = new_array(RACEWAY_FLOAT64, n, 2, &sums);
  const auto save_all = [this, n, rows] {
    for (std::size_t i = 0; i < n; ++i) pool_->save(i, static_cast<char*>(rows) + i * pool_->state_bytes());
  };
  run_in_background(save_all, row_array);
  for (std::size_t i = 0; i < n; ++i) {
    const raceway_random& r = pool_->random(i);
    const std::uint64_t words[6] = {r.state_high, r.state_low, r.increment_high, r.increment_low, r.has_half, r.half};
    std::memcpy(static_cast<char*>(random) + i * sizeof words, words, sizeof words);
    const raceway_episode& e = pool_->episode(i);
    const raceway_record& k = pool_->record(i);
    const std::int64_t numbers[4] = {e.steps, k.number, e.status, k.faults};
    std::memcpy(static_cast<char*>(counts) + i * sizeof numbers, numbers, sizeof numbers);
    const double reals[2] = {k.reward_sum, k.start_s == 0.0 ? 0.0 : seconds_now() - k.start_s};
    std::memcpy(static_cast<char*>(sums) + i * sizeof reals, reals, sizeof reals);
  }
  return nb::make_tuple(row_array, random_array, count_array, sum_array);
}

void BoundPool::load(nb::handle rows, nb::handle random, nb::handle counts, nb::handle sums) {
  const Pool::Turn turn(*pool_, true, true);
  recover();
  pool_->require_idle("set_state()");
  const std::size_t n = pool_->settings().num_envs, bytes = pool_->state_bytes();
  const auto* row_data = static_cast<const char*>(memory_of(rows, RACEWAY_UINT8, n, bytes, "rows"));
  const auto* words = static_cast<const std::uint64_t*>(memory_of(random, RACEWAY_INT64, n, 6, "random"));
  const auto* numbers = static_cast<const std::int64_t*>(memory_of(counts, RACEWAY_INT64, n, 4, "episodes"));
  const auto* reals = static_cast<const double*>(memory_of(sums, RACEWAY_FLOAT64, n, 2, "sums"));
  // Where episodes are reset within the step, none is ever seen that has ended.
  const auto ended = pool_->settings().autoreset == RACEWAY_SAME_STEP ? RACEWAY_RUNNING : RACEWAY_ENDED;
  for (std::size_t i = 0; i < n; ++i) {
    const std::string flaw = flaw_of(words + 6 * i, numbers + 4 * i, ended);
    if (flaw.empty()) continue;
    throw nb::value_error(("the state of environment " + std::to_string(i) + " is refused: " + flaw + ".").c_str());
  }
  run_in_background([this, row_data] { load_rows(*pool_, row_data); }, rows);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t* w = words + 6 * i;
    pool_->random(i) = {w[0], w[1], w[2], w[3], static_cast<std::uint32_t>(w[4]), static_cast<std::uint32_t>(w[5])};
    const std::int64_t* m = numbers + 4 * i;
    pool_->episode(i) = {m[0], pool_->episode(i).limit, static_cast<std::int32_t>(m[2])};
    pool_->record(i) = {m[1], reals[2 * i], seconds_now() - reals[2 * i + 1], m[3]};
  }
  pool_->states_changed();
}

}  // namespace raceway::python
