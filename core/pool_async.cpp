// Sending actions to some environments and receiving those that are ready.
#include <algorithm>
#include <numeric>

#include "pool.hpp"

namespace raceway {

void Pool::begin_async() {
  if (async_) return;
  if (!staging_) staging_ = std::make_unique<Memory>(full_rows_.bytes(), !spread_over_nodes_);
  batch_ = bind(staging_->data());
  async_ = true;
}

void Pool::async_reset() {
  if (const std::size_t count = in_flight()) {
    throw StateError("async_reset() while " + std::to_string(count) +
                     " environments are in flight: recv() them first, or call reset() to drop them and start over.");
  }
  begin_async();
  for (std::size_t i = 0; i < settings_.num_envs; ++i) sent_[i] = 1;
  all_started_ = true;
  in_flight_.fetch_add(settings_.num_envs, std::memory_order_acq_rel);
  ranges_.assign(1, {0, settings_.num_envs, kReset});
  crew_->post(ranges_);
}

void Pool::check_sendable(const std::vector<std::size_t>& envs) const {
  std::vector<std::size_t> twice, fresh, ended;
  for (std::size_t i = 0; i < envs.size(); ++i) {
    const std::size_t env = envs[i];
    if (sent_[env] || (i > 0 && env == envs[i - 1])) {
      twice.push_back(env);
    } else if (episodes_[env].status == RACEWAY_FRESH) {
      fresh.push_back(env);
    } else if (episodes_[env].status == RACEWAY_ENDED && settings_.autoreset == RACEWAY_DISABLED) {
      ended.push_back(env);
    }
  }
  if (!twice.empty()) {
    throw StateError(subject(twice) +
                     " an action already and must be received first. Send one action to one environment, then recv() "
                     "it before the next.");
  }
  refuse_unready(fresh, ended);
}

void Pool::send(const std::vector<std::size_t>& envs) {
  begin_async();
  ranges_.clear();
  for (const std::size_t env : envs) {
    sent_[env] = 1;
    if (!ranges_.empty() && ranges_.back().first + ranges_.back().count == env) {
      ranges_.back().count += 1;
    } else {
      ranges_.push_back({env, 1, kStep});
    }
  }
  in_flight_.fetch_add(envs.size(), std::memory_order_acq_rel);
  crew_->post(ranges_);
}

bool Pool::recv(std::byte* rows, Clock::time_point deadline, bool others_may_send) {
  if (!enough_ready(deadline, others_may_send)) return false;
  const std::size_t wanted = settings_.batch_size;
  std::int64_t* ids = batch_rows_.env_ids(rows);
  {
    const std::lock_guard lock(ready_mutex_);
    std::copy_n(ready_.begin(), wanted, ids);
    ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(wanted));
    num_ready_.store(ready_.size(), std::memory_order_release);
  }
  if (wanted == settings_.num_envs) {
    std::iota(ids, ids + wanted, 0);
  } else {
    std::sort(ids, ids + wanted);
  }
  for (std::size_t row = 0; row < wanted;) {
    const auto env = static_cast<std::size_t>(ids[row]);
    std::size_t count = 1;
    while (row + count < wanted && ids[row + count] == ids[row] + static_cast<std::int64_t>(count)) ++count;
    batch_rows_.copy(rows, row, full_rows_, staging_->data(), env, count);
    for (std::size_t i = env; i < env + count; ++i) sent_[i] = 0;
    row += count;
  }
  in_flight_.fetch_sub(wanted, std::memory_order_acq_rel);
  return true;
}

bool Pool::enough_ready(Clock::time_point deadline, bool others_may_send) {
  const std::size_t wanted = settings_.batch_size;
  while (true) {
    const std::uint32_t seen = arrived_.now();
    raise_failure();
    if (closed()) throw ClosedError("the pool was closed while recv() waited.");
    if (num_ready_.load(std::memory_order_acquire) >= wanted) return true;
    const std::size_t flying = in_flight();
    if (flying < wanted && !others_may_send) {
      raise_failure();  // which may be why there are so few
      throw StateError("recv() would wait for ever: a batch takes " + std::to_string(wanted) + " environments and " +
                       std::to_string(flying) + " are in flight. Call async_reset() or send() first.");
    }
    if (!arrived_.wait(seen, recv_patience_, deadline)) return false;
  }
}

// What was sent is done and forgotten.
bool Pool::abandon(const Poll& poll) {
  while (!crew_->drain(poll ? Clock::now() + kPollEvery : Clock::time_point::max())) {
    if (!poll()) return false;
  }
  const std::lock_guard lock(ready_mutex_);
  ready_.clear();
  num_ready_.store(0, std::memory_order_release);
  failure_.reset();
  for (std::size_t i = 0; i < settings_.num_envs; ++i) sent_[i] = 0;
  in_flight_.store(0, std::memory_order_release);
  return true;
}

// An environment that failed is not received: it waits for its reset, and recv() raises what it said.
void Pool::deliver(Range range) {
  bool enough = false, failed = false;
  {
    const std::lock_guard lock(ready_mutex_);
    for (std::size_t env = range.first; env < range.first + range.count; ++env) {
      if (episodes_[env].status == RACEWAY_FRESH) {
        sent_[env] = 0;
        in_flight_.fetch_sub(1, std::memory_order_acq_rel);
        failed = true;
      } else {
        ready_.push_back(env);
      }
    }
    num_ready_.store(ready_.size(), std::memory_order_release);
    enough = ready_.size() >= settings_.batch_size || failed;
  }
  if (enough) arrived_.raise();
}

}  // namespace raceway
