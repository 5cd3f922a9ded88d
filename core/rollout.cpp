#include "rollout.hpp"

#include <algorithm>
#include <cstring>

namespace raceway {
namespace {

// Passing rows through a network one by one costs about a nanosecond more for so many multiplications.
constexpr double kMultiplicationsPerNs = 20;
// Steps that are so many times as long are done one environment at a time: threads then end together.
constexpr double kDear = 50;

std::string kind_of(const raceway_column& column) {
  if (column.space == RACEWAY_DISCRETE) return "one of " + std::to_string(column.discrete_n) + " values";
  return "a box of " + std::to_string(elements_of(column)) + " numbers";
}

}  // namespace

Rollout::Rollout(Pool& pool, std::shared_ptr<Policy> policy)
    : pool_(pool), policy_(std::move(policy)), rows_(pool.layout(), kMostRows, {true, true, false}) {
  if (pool_.settings().autoreset != RACEWAY_SAME_STEP) {
    throw std::invalid_argument(
        "a rollout has no rows without meaning: its pool must reset episodes within the step. Make it with "
        "autoreset='same_step'.");
  }
  check_observations();
  check_actions();
  const raceway_layout& layout = pool_.layout();
  for (std::size_t i = 0; i < layout.num_obs; ++i) obs_size_ += elements_of(layout.obs[i]);
  for (std::size_t i = 0; i < layout.num_info; ++i) {
    const raceway_column& column = layout.info[i];
    const bool marks = column.dtype == RACEWAY_BOOL || column.dtype == RACEWAY_INT8 || column.dtype == RACEWAY_UINT8;
    if (std::strcmp(column.name, "action_mask") == 0 && marks && shape().kind == ActionKind::kCategorical &&
        elements_of(column) == shape().num_logits()) {
      mask_column_ = i;
    } else if (elements_of(column) == 1) {
      info_names_.emplace_back(column.name);
      info_columns_.push_back(i);
    }
  }
  info_sums_.resize(pool_.settings().num_envs * info_names_.size());
}

void Rollout::check_observations() const {
  const raceway_layout& layout = pool_.layout();
  const auto& inputs = shape().inputs;
  if (inputs.size() != layout.num_obs) {
    throw std::invalid_argument("the policy has " + std::to_string(inputs.size()) + " inputs: an observation of " +
                                pool_.table().name + " has " + std::to_string(layout.num_obs) + " leaves.");
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const raceway_column& column = layout.obs[i];
    const bool discrete = column.space == RACEWAY_DISCRETE;
    const std::size_t size = discrete ? static_cast<std::size_t>(column.discrete_n) : elements_of(column);
    const bool single = !discrete || elements_of(column) == 1;
    if (inputs[i].discrete == discrete && inputs[i].size == size && single) continue;
    throw std::invalid_argument("input " + std::to_string(i) + " of the policy is " +
                                (inputs[i].discrete ? "one of " : "a box of ") + std::to_string(inputs[i].size) +
                                ": that leaf of an observation of " + pool_.table().name + " is " + kind_of(column) +
                                ".");
  }
}

void Rollout::check_actions() const {
  const raceway_column& column = pool_.layout().action;
  const bool discrete = column.space == RACEWAY_DISCRETE;
  const auto n = static_cast<std::size_t>(column.discrete_n);
  bool fits = shape().action_size == elements_of(column) && discrete == (shape().kind != ActionKind::kGaussian);
  if (shape().kind == ActionKind::kCategorical) {
    fits = fits && std::all_of(shape().nvec.begin(), shape().nvec.end(), [n](std::size_t each) { return each == n; });
  } else if (shape().kind == ActionKind::kBernoulli) {
    fits = fits && n == 2;
  }
  if (fits) return;
  static constexpr const char* kKinds[] = {"categorical", "Gaussian", "Bernoulli"};
  throw std::invalid_argument("the policy's actions are " + std::to_string(shape().action_size) + " " +
                              kKinds[static_cast<int>(shape().kind)] + ": an action of " + pool_.table().name + " is " +
                              kind_of(column) + ".");
}

// --- a call

bool Rollout::collect(const RolloutCall& call, const Pool::Poll& poll) {
  pool_.require_ready("collect()");
  if (call.arrays.action_mask && !mask_column_) {
    throw std::invalid_argument(std::string(pool_.table().name) +
                                " gives no action_mask of the policy's size. Pass None for it.");
  }
  network_ = policy_->network();
  if (!network_) throw StateError("the policy has no weights yet. Call load() first.");
  call_ = call;
  keys_.emplace(shape(), call.seed);
  failure_.reset();
  std::fill(info_sums_.begin(), info_sums_.end(), 0.0);
  const bool completed =
      pool_.run_groups(group_size(), [this](std::size_t first, std::size_t count) { run_group(first, count); }, poll);
  if (pool_.unfinished()) return false;  // a thread is still at it, and needs what is here
  network_.reset();
  if (failure_) {
    pool_.states_changed();
    const Failure& failure = *failure_;
    if (failure.of_policy) throw PolicyError(failure.text);
    throw EnvError(failure.text);
  }
  if (completed) mean_infos();
  return completed;
}

// Few environments at a time where their steps are dear. Otherwise as many as the kernel takes, and the same number of
// groups for every thread.
std::size_t Rollout::group_size() const {
  if (forced_group_size_ > 0) return std::min(forced_group_size_, kMostRows);
  const std::size_t envs = pool_.settings().num_envs, threads = pool_.most_at_work();
  const double known = step_ns_.load(std::memory_order_relaxed), step_ns = known > 0.0 ? known : pool_.step_ns();
  const double alone_ns = static_cast<double>(shape().num_multiplications()) / kMultiplicationsPerNs;
  if (step_ns > kDear * alone_ns) return 1;
  const std::size_t turns = (envs + kMostRows * threads - 1) / (kMostRows * threads);
  return (envs + turns * threads - 1) / (turns * threads);
}

// Of several, the earliest is told, and in one step the one with the lowest number: a group stops at its first, so that
// this does not depend on how environments are grouped.
void Rollout::note_failure(Failure failure) {
  const std::lock_guard lock(mutex_);
  const auto order = [](const Failure& each) { return std::pair(each.step, each.env); };
  if (!failure_ || order(failure) < order(*failure_)) failure_ = std::move(failure);
}

std::unique_ptr<Rollout::Desk> Rollout::take_desk() {
  {
    const std::lock_guard lock(mutex_);
    if (!desks_.empty()) {
      auto desk = std::move(desks_.back());
      desks_.pop_back();
      return desk;
    }
  }
  return std::make_unique<Desk>(rows_, shape(), bytes_of(pool_.layout().action));
}

// Summed over each environment's steps by its thread, and here over environments in order.
void Rollout::mean_infos() const {
  if (!call_.arrays.info_means) return;
  const std::size_t envs = pool_.settings().num_envs, names = info_names_.size();
  const double steps = static_cast<double>(envs) * static_cast<double>(call_.num_steps);
  for (std::size_t i = 0; i < names; ++i) {
    double sum = 0.0;
    for (std::size_t env = 0; env < envs; ++env) sum += info_sums_[env * names + i];
    call_.arrays.info_means[i] = steps > 0.0 ? sum / steps : 0.0;
  }
}

}  // namespace raceway
