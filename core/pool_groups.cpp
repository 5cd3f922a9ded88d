// Long work on groups of environments.
#include <algorithm>
#include <thread>

#include "pool.hpp"

namespace raceway {
namespace {

// How long groups that were told to leave are waited for.
constexpr std::chrono::milliseconds kLeaving{300};

}  // namespace

void Pool::require_ready(const char* call) const {
  require_idle(call);
  require_started();
}

void Pool::place(raceway_batch& batch, std::size_t first) {
  batch.layout = &layout_;
  batch.envs = env_at(first);
  batch.random = random_.data() + first;
  batch.episodes = episodes_.data() + first;
  batch.records = records_.data() + first;
}

std::int64_t Pool::step_rows(const raceway_batch& batch, std::size_t first, std::size_t count,
                             raceway_error* error) const {
  const UserCodeScope scope(settings_.source);
  return guard_ ? guard_->call(table_.step, batch, first, count, error) : table_.step(&batch, first, count, error);
}

void Pool::observe_rows(const raceway_batch& batch, std::size_t first, std::size_t count) const {
  const UserCodeScope scope(settings_.source);
  if (guard_) {
    guard_->observe(batch, first, count);
  } else {
    table_.observe(&batch, first, count);
  }
}

bool Pool::run_groups(std::size_t group_size, GroupWork work, const Poll& poll) {
  settle();
  group_work_ = std::move(work);
  group_size_ = group_size;
  poll_ = poll ? &poll : nullptr;
  poller_ = std::this_thread::get_id();
  last_look_ = Clock::now();
  next_poll_ = last_look_ + kPollEvery;
  asked_ = 0;
  asks_per_look_ = 1;
  gave_up_at_.reset();
  given_up_.store(false, std::memory_order_relaxed);
  crew_->begin_long((settings_.num_envs + group_size - 1) / group_size, kGroups);
  const bool may_hang = settings_.source != nullptr;
  unfinished_ = !crew_->finish(poll ? [this] { return wait_on(); } : Crew::Meanwhile(), may_hang);
  poll_ = nullptr;
  return !unfinished_ && !given_up_.load(std::memory_order_relaxed) && !closed();
}

// Groups that were told to leave are waited for until it is clear that one is in a step that does not end.
bool Pool::wait_on() {
  look_up();
  if (!given_up_.load(std::memory_order_relaxed)) return true;
  if (!gave_up_at_) gave_up_at_ = Clock::now();
  return Clock::now() - *gave_up_at_ < kLeaving;
}

bool Pool::keep_going() {
  if (std::this_thread::get_id() == poller_ && poll_ && ++asked_ >= asks_per_look_) look_up();
  return !given_up_.load(std::memory_order_relaxed) && !closed_.load(std::memory_order_relaxed);
}

// Looking at the clock costs a cheap step too much: it is looked at about every millisecond.
void Pool::look_up() {
  const auto now = Clock::now();
  const bool soon = now - last_look_ < std::chrono::milliseconds(1);
  asks_per_look_ = soon ? std::min(2 * asks_per_look_, 1U << 16) : std::max(asks_per_look_ / 4, 1U);
  asked_ = 0;
  last_look_ = now;
  if (now < next_poll_) return;
  next_poll_ = now + kPollEvery;
  if (!(*poll_)()) give_up();
}

void Pool::end_long_work(const Poll& go_on) {
  while (yielding_.load(std::memory_order_acquire) > 0 && go_on()) {
    give_up();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

}  // namespace raceway
