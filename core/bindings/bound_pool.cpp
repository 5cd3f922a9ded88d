// The pool as Python sees it: arguments in, arrays out, errors translated. What it does is in core/pool.
#include "bound_pool.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <numeric>

#include "../ctrl_c.hpp"
#include "describe.hpp"
#include "interpreter.hpp"

namespace raceway::python {
namespace {

// How long a step that is under way is waited for.
constexpr std::chrono::seconds kCloseWait{2};
// And one that was interrupted, by the next call.
constexpr std::chrono::seconds kRecoverWait{10};

std::vector<std::uint32_t> seed_words(nb::handle seed) {
  const auto size = (nb::cast<std::size_t>(seed.attr("bit_length")()) + 31) / 32;
  const auto bytes = nb::cast<nb::bytes>(seed.attr("to_bytes")(std::max<std::size_t>(size, 1) * 4, "little"));
  std::vector<std::uint32_t> words(bytes.size() / 4);
  std::memcpy(words.data(), bytes.c_str(), bytes.size());
  return words;
}

// Waits until the deadline, unless a signal handler raises.
Pool::Poll until(Clock::time_point deadline, const Pool::Poll& poll) {
  return [deadline, poll, next = Clock::now()]() mutable {
    const auto now = Clock::now();
    if (now >= deadline) return false;
    if (!poll || now < next) return true;
    next = now + kPollEvery;
    return poll();
  };
}

}  // namespace

BoundPool::BoundPool(const Configurations& given, const std::vector<std::size_t>& which,
                     const std::vector<std::int32_t>& limits, const nb::dict& settings)
    : task_(given.task().id) {
  const raceway_table& table = *given.task().table;
  std::vector<Configuration> configurations;
  for (const std::size_t index : which) configurations.push_back(given.at(index));
  Pool::Settings wanted;
  wanted.num_envs = which.size();
  wanted.batch_size = nb::cast<std::size_t>(settings["batch_size"]);
  wanted.workers = nb::cast<int>(settings["num_workers"]);
  wanted.autoreset = static_cast<raceway_autoreset>(nb::cast<int>(settings["autoreset"]));
  wanted.record_episodes = nb::cast<bool>(settings["record_episodes"]);
  wanted.pin = nb::cast<bool>(settings["pin"]);
  wanted.source = given.task().source;
  const Pool::Poll poll = signals_of_main_thread();
  if (poll && wanted.source) watch_this_thread();
  {
    const Unlocked unlocked;
    pool_ = std::make_unique<Pool>(table, std::move(configurations), limits, wanted, poll);
  }
  if (pool_->unfinished()) {
    static_cast<void>(pool_.release());
    throw nb::python_error();
  }
  full_slab_ = std::make_shared<Slab>(pool_->full_rows().bytes(), !pool_->spread_over_nodes());
  batch_slab_ = std::make_shared<Slab>(pool_->batch_rows().bytes(), !pool_->spread_over_nodes());
  for (std::size_t i = 0; i < pool_->layout().num_info; ++i) {
    const std::string name = pool_->layout().info[i].name;
    info_keys_.push_back({nb::cast(name), nb::cast("_" + name)});
  }
  if (!nb::cast<bool>(settings["copy"])) {
    Lease full(*full_slab_), batch(*batch_slab_);
    kept_full_ = full.data();
    kept_batch_ = batch.data();
    kept_full_owner_ = full.into_owner();
    kept_batch_owner_ = batch.into_owner();
  }
}

// The memory must stay if the threads are those of a parent process, if one never came back from a step, or if the
// interpreter is ending: then nothing is waited for, and the threads go with the process.
BoundPool::~BoundPool() {
  if (pool_->forked() || stuck_) {
    leave_behind();
  } else if (interpreter_is_ending()) {
    pool_->request_close();
    leave_behind();
  } else {
    bool closed = false;
    {
      const Unlocked unlocked;
      closed = pool_->close(Clock::now() + kCloseWait);
    }
    if (!closed) leave_behind();
  }
}

// With all that its threads may still write to.
void BoundPool::leave_behind() {
  static_cast<void>(pool_.release());
  static_cast<void>(new std::vector<Held>(std::move(held_)));
  static_cast<void>(kept_full_owner_.release());
  static_cast<void>(kept_batch_owner_.release());
}

// Calls of environments other than steps. `used` is what they write to.
void BoundPool::run_in_background(std::function<void()> work, nb::handle used) {
  const Pool::Poll poll = signals_of_main_thread();
  bool finished = false;
  {
    const Unlocked unlocked;
    finished = pool_->run_in_background(std::move(work), poll);
  }
  if (finished) return;
  hold(used);
  throw nb::python_error();
}

void BoundPool::recover() {
  if (!pool_->unfinished()) return;
  const Pool::Poll poll = signals_of_main_thread();
  bool recovered = false;
  {
    const Unlocked unlocked;
    recovered = pool_->recover(until(Clock::now() + kRecoverWait, poll));
  }
  if (recovered) {
    held_.clear();
  } else if (PyErr_Occurred()) {
    throw nb::python_error();
  } else {
    throw StateError(
        "a call was interrupted, and an environment has still not returned from it. Wait longer and try again, or "
        "close() this pool and make a new one.");
  }
}

// None leaves a generator where it is.
void BoundPool::seed(const nb::list& seeds) {
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    if (!seeds[i].is_none()) pool_->random(i) = seeded(seed_words(seeds[i]));
  }
}

nb::tuple BoundPool::reset(nb::handle mask, const std::optional<std::vector<double>>& options, const nb::list& seeds) {
  const Pool::Turn turn(*pool_, true, true);
  recover();
  const std::size_t num_envs = pool_->settings().num_envs;
  const auto* marks = mask.is_none()
                          ? nullptr
                          : static_cast<const std::uint8_t*>(memory_of(mask, RACEWAY_BOOL, num_envs, 0, "reset_mask"));
  pool_->check_resettable(marks);
  if (pool_->in_flight() > 0) {
    const Pool::Poll poll = signals_of_main_thread();
    bool abandoned = false;
    {
      const Unlocked unlocked;
      abandoned = pool_->abandon(poll);
    }
    if (!abandoned) throw nb::python_error();
  }
  seed(seeds);
  return filled([&](std::byte* rows) { pool_->begin_reset(rows, marks, options ? options->data() : nullptr); });
}

nb::tuple BoundPool::step(nb::handle actions) {
  const Pool::Turn turn(*pool_, true, true);
  recover();
  pool_->require_idle("step()");
  read_actions(actions, *pool_, task_, {}, actions_aside_);
  return filled([&](std::byte* rows) { pool_->begin_step(rows); });
}

nb::object BoundPool::observe() {
  const Pool::Turn turn(*pool_, true, true);
  recover();
  Lease lease(*full_slab_);  // with copy=False too: what the last step returned stays
  std::byte* rows = lease.data();
  const nb::object owner = lease.into_owner();
  run_in_background([this, rows] { pool_->observe(rows); }, owner);
  return observations(pool_->full_rows().bind(rows).obs, pool_->layout(), pool_->settings().num_envs, owner);
}

void BoundPool::async_reset() {
  const Pool::Turn turn(*pool_, true, false);
  recover();
  const Unlocked unlocked;
  pool_->async_reset();
}

void BoundPool::send(nb::handle actions, nb::handle env_ids) {
  const Pool::Turn turn(*pool_, true, false);
  recover();
  const std::size_t num_envs = pool_->settings().num_envs;
  if (env_ids.is_none()) {
    envs_.resize(num_envs);
    std::iota(envs_.begin(), envs_.end(), std::size_t{0});
  } else {
    read_env_ids(env_ids, num_envs, envs_);
  }
  sorted_envs_ = envs_;
  std::sort(sorted_envs_.begin(), sorted_envs_.end());
  pool_->check_sendable(sorted_envs_);
  read_actions(actions, *pool_, task_, envs_, actions_aside_);
  const Unlocked unlocked;
  pool_->send(sorted_envs_);
}

// Waits in slices, so that Ctrl-C is heard; nothing is lost by it.
nb::tuple BoundPool::recv(std::optional<double> timeout_s) {
  const Pool::Turn turn(*pool_, false, true);
  const auto end = timeout_s ? Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                  std::chrono::duration<double>(std::min(*timeout_s, 1e8)))
                             : Clock::time_point::max();
  const Rows rows(*this, true);
  while (!received(rows.data, std::min(end, Clock::now() + kPollEvery), timeout_s.has_value())) {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (Clock::now() < end) continue;
    const std::string text = "no batch of " + std::to_string(pool_->settings().batch_size) +
                             " environments was ready within timeout=" + std::to_string(*timeout_s) + " s; " +
                             std::to_string(pool_->in_flight()) + " are in flight. Nothing is lost.";
    PyErr_SetString(PyExc_TimeoutError, text.c_str());
    throw nb::python_error();
  }
  return completed(wrapped(rows, true), rows, true);
}

bool BoundPool::received(std::byte* rows, Clock::time_point deadline, bool others_may_send) {
  const Unlocked unlocked;
  return pool_->recv(rows, deadline, others_may_send);
}

// Memory for one batch and what keeps it: leased anew, or with copy=False always the same.
BoundPool::Rows::Rows(const BoundPool& pool, bool some) {
  if (pool.kept_full_) {
    data = some ? pool.kept_batch_ : pool.kept_full_;
    owner = some ? pool.kept_batch_owner_ : pool.kept_full_owner_;
    return;
  }
  Lease lease(some ? *pool.batch_slab_ : *pool.full_slab_);
  data = lease.data();
  owner = lease.into_owner();
}

// The arrays are made while the workers have already begun to fill them, and must not go before they have finished.
template <class Begin>
nb::tuple BoundPool::filled(Begin begin) {
  const Rows rows(*this, false);
  begin(rows.data);
  nb::tuple result;
  try {
    result = wrapped(rows, false);
  } catch (...) {
    pool_->finish();
    throw;
  }
  const Pool::Poll poll = signals_of_main_thread();
  bool finished = false;
  {
    const Unlocked unlocked;
    finished = pool_->finish(poll);
  }
  if (!finished) {
    hold(rows.owner);
    throw nb::python_error();
  }
  return completed(std::move(result), rows, false);
}

// (observations, rewards, terminated, truncated, infos). The infos of ended episodes are only what they are made of.
nb::tuple BoundPool::wrapped(const Rows& memory, bool some) const {
  const RowLayout& layout = some ? pool_->batch_rows() : pool_->full_rows();
  const raceway_layout& columns = pool_->layout();
  const std::size_t rows = layout.rows();
  const nb::handle owner = memory.owner;
  const raceway_batch batch = layout.bind(memory.data);
  nb::dict infos;
  if (some) infos["env_id"] = array_over(layout.env_ids(memory.data), rows, owner);
  for (std::size_t i = 0; i < columns.num_info; ++i) {
    infos[info_keys_[i].values] = array_over(batch.info[i], columns.info[i], rows, 0, owner);
    infos[info_keys_[i].marks] = flags_over(batch.info_present[i], rows, owner);
  }
  if (batch.final_obs) {
    infos["final_obs"] = observations(batch.final_obs, columns, rows, owner);
    nb::dict final_info;
    for (std::size_t i = 0; i < columns.num_info; ++i) {
      final_info[info_keys_[i].values] = array_over(batch.final_info[i], columns.info[i], rows, 0, owner);
    }
    infos["final_info"] = final_info;
  }
  if (batch.episode_return) {
    infos["episode"] =
        nb::make_tuple(array_over(batch.episode_return, rows, owner), array_over(batch.episode_length, rows, owner),
                       array_over(batch.episode_time, rows, owner));
  }
  return nb::make_tuple(observations(batch.obs, columns, rows, owner), array_over(batch.reward, rows, owner),
                        flags_over(batch.terminated, rows, owner), flags_over(batch.truncated, rows, owner), infos);
}

// What can only be said when the rows are filled: entries that no environment has are left out, faults are named.
nb::tuple BoundPool::completed(nb::tuple result, const Rows& memory, bool some) const {
  const raceway_layout& columns = pool_->layout();
  if (columns.num_info == 0 && columns.num_faults == 0) return result;
  const RowLayout& layout = some ? pool_->batch_rows() : pool_->full_rows();
  const std::size_t rows = layout.rows();
  const raceway_batch batch = layout.bind(memory.data);
  const auto infos = nb::borrow<nb::dict>(result[4]);
  for (std::size_t i = 0; i < columns.num_info; ++i) {
    if (std::memchr(batch.info_present[i], 1, rows)) continue;
    nb::del(infos[info_keys_[i].values]);
    nb::del(infos[info_keys_[i].marks]);
  }
  if (!batch.fault || std::all_of(batch.fault, batch.fault + rows, [](std::uint8_t code) { return code == 0; })) {
    return result;
  }
  nb::list names, marks;
  for (std::size_t i = 0; i < rows; ++i) {
    names.append(batch.fault[i] ? nb::cast(columns.faults[batch.fault[i] - 1]) : nb::none());
    marks.append(batch.fault[i] != 0);
  }
  const auto array = nb::module_::import_("numpy").attr("array");
  infos["fault"] = array(names, nb::arg("dtype") = "O");
  infos["_fault"] = array(marks);
  return result;
}

nb::object BoundPool::faults() {
  void* data = nullptr;
  nb::object counts = new_array(RACEWAY_INT64, pool_->settings().num_envs, 0, &data);
  for (std::size_t i = 0; i < pool_->settings().num_envs; ++i) {
    const std::atomic_ref count(pool_->record(i).faults);
    static_cast<std::int64_t*>(data)[i] = count.load(std::memory_order_relaxed);
  }
  return counts;
}

nb::object BoundPool::pictures() {
  const Pool::Turn turn(*pool_, true, true);
  recover();
  pool_->require_ready("render()");
  const raceway_table& table = pool_->table();
  if (!table.draw) throw StateError(task_ + " draws no pictures.");
  const auto height = static_cast<std::size_t>(table.picture_height);
  const auto width = static_cast<std::size_t>(table.picture_width);
  const std::size_t bytes = height * width * 3, envs = pool_->settings().num_envs;
  void* data = nullptr;
  nb::object pixels = new_array(RACEWAY_UINT8, envs, bytes, &data);
  std::memset(data, 0, envs * bytes);
  const auto draw = [this, data, envs, bytes] {
    for (std::size_t i = 0; i < envs; ++i) pool_->draw(i, static_cast<std::uint8_t*>(data) + i * bytes);
  };
  run_in_background(draw, pixels);
  return pixels.attr("reshape")(envs, height, width, 3);
}

void BoundPool::close() {
  if (pool_->forked() || pool_->closed()) return;
  const Pool::Poll go_on = until(Clock::now() + kCloseWait, signals_of_main_thread());
  {
    const Unlocked unlocked;
    pool_->end_long_work(go_on);
  }
  if (PyErr_Occurred()) throw nb::python_error();
  const Pool::Turn turn(*pool_, true, false);
  {
    const Unlocked unlocked;
    stuck_ = !pool_->close(go_on);
  }
  if (!stuck_) held_.clear();
  if (PyErr_Occurred()) throw nb::python_error();
}

}  // namespace raceway::python
