// What a thread does in a rollout, step by step.
#include <algorithm>
#include <cmath>

#include "rollout.hpp"

namespace raceway {
namespace {

// Calls `use` with a null pointer of the C++ type that a dtype stands for.
template <class Use>
auto with_type(std::int32_t dtype, Use use) {
  switch (dtype) {
    case RACEWAY_BOOL:
    case RACEWAY_UINT8:
      return use(static_cast<const std::uint8_t*>(nullptr));
    case RACEWAY_INT8:
      return use(static_cast<const std::int8_t*>(nullptr));
    case RACEWAY_INT32:
      return use(static_cast<const std::int32_t*>(nullptr));
    case RACEWAY_INT64:
      return use(static_cast<const std::int64_t*>(nullptr));
    case RACEWAY_FLOAT32:
      return use(static_cast<const float*>(nullptr));
    default:
      return use(static_cast<const double*>(nullptr));
  }
}

double number_at(const raceway_column& column, const void* values, std::size_t row) {
  return with_type(column.dtype,
                   [&](auto* type) { return static_cast<double>(static_cast<decltype(type)>(values)[row]); });
}

}  // namespace

void Rollout::run_group(std::size_t first, std::size_t count) {
  const auto start = Clock::now();
  try {
    std::unique_ptr<Desk> desk = take_desk();
    pool_.place(desk->batch, first);
    if (run_steps(*desk, first, count)) {
      const std::chrono::duration<double, std::nano> took = Clock::now() - start;
      const double ns = took.count() / static_cast<double>(count * std::max<std::size_t>(call_.num_steps, 1));
      const double known = step_ns_.load(std::memory_order_relaxed);
      step_ns_.store(known > 0.0 ? known + (ns - known) / 8 : ns, std::memory_order_relaxed);
    }
    const std::lock_guard lock(mutex_);
    desks_.push_back(std::move(desk));
  } catch (const std::exception& error) {
    note_failure({0, first, std::string("a rollout failed: ") + error.what(), true});
  }
}

bool Rollout::run_steps(Desk& desk, std::size_t first, std::size_t count) {
  raceway_batch now = desk.batch;
  if (!call_.arrays.action_mask) now.info = nullptr;
  pool_.observe_rows(now, 0, count);
  for (std::size_t t = 0; t < call_.num_steps; ++t) {
    if (!pool_.keep_going()) return false;
    fetch_places(t * pool_.settings().num_envs + first);
    if (!observe(desk, t, first, count, desk.batch.obs) || !act(desk, t, first, count) ||
        !step(desk, t, first, count)) {
      return false;
    }
  }
  if (!observe(desk, call_.num_steps, first, count, desk.batch.obs)) return false;
  desk.pass.forward(*network_, count, false);
  float* values = call_.arrays.values + call_.num_steps * pool_.settings().num_envs + first;
  for (std::size_t row = 0; row < count; ++row) values[row] = desk.pass.value(row);
  return true;
}

// Each step writes to new lines of a dozen arrays: they come while the policy is at work.
void Rollout::fetch_places(std::size_t place) const {
  const RolloutArrays& arrays = call_.arrays;
  __builtin_prefetch(static_cast<const float*>(arrays.actions) + place * shape().action_size, 1);
  __builtin_prefetch(arrays.rewards + place, 1);
  __builtin_prefetch(arrays.terminated + place, 1);
  __builtin_prefetch(arrays.truncated + place, 1);
  __builtin_prefetch(arrays.log_probs + place, 1);
  __builtin_prefetch(arrays.values + place, 1);
  __builtin_prefetch(arrays.final_values + place, 1);
  __builtin_prefetch(arrays.episode_returns + place, 1);
  __builtin_prefetch(arrays.episode_lengths + place, 1);
}

// Writes observations to their places and to the policy's input.
bool Rollout::observe(Desk& desk, std::size_t t, std::size_t first, std::size_t count, const void* obs) {
  const raceway_layout& layout = pool_.layout();
  const std::size_t place = t * pool_.settings().num_envs + first;
  return with_type(layout.obs[0].dtype, [&](auto* type) {
    const auto* rows = static_cast<decltype(type)>(obs);
    std::size_t offset = 0;
    for (std::size_t leaf = 0; leaf < layout.num_obs; ++leaf) {
      const std::size_t size = elements_of(layout.obs[leaf]);
      const auto copy = [&](auto* to) {
        for (std::size_t row = 0; row < count; ++row) {
          const auto* from = rows + row * obs_size_ + offset;
          for (std::size_t i = 0; i < size; ++i) *to++ = static_cast<std::remove_reference_t<decltype(*to)>>(from[i]);
        }
      };
      if (layout.obs[leaf].space == RACEWAY_DISCRETE) {
        copy(static_cast<std::int32_t*>(call_.arrays.obs[leaf]) + place * size);
      } else {
        copy(static_cast<float*>(call_.arrays.obs[leaf]) + place * size);
      }
      offset += size;
    }
    for (std::size_t row = 0; row < count; ++row) {
      if (desk.pass.encode(*network_, row, rows + row * obs_size_)) continue;
      note_failure({t, first + row,
                    "environment " + std::to_string(first + row) + " of " + pool_.table().name +
                        " gave an observation outside its space in step " + std::to_string(t) + " of the rollout.",
                    false});
      return false;
    }
    return true;
  });
}

bool Rollout::act(Desk& desk, std::size_t t, std::size_t first, std::size_t count) {
  const RolloutArrays& arrays = call_.arrays;
  const std::size_t place = t * pool_.settings().num_envs + first;
  desk.pass.forward(*network_, count, true);
  const std::uint8_t* mask = nullptr;
  if (arrays.action_mask) {
    mask = static_cast<const std::uint8_t*>(desk.batch.info[*mask_column_]);
    const std::size_t size = shape().num_logits();
    for (std::size_t i = 0; i < count * size; ++i) arrays.action_mask[place * size + i] = mask[i] != 0;
  }
  const std::size_t finite =
      desk.pass.sample(*network_, count, *keys_, call_.first_env + static_cast<std::uint32_t>(first),
                       call_.first_step + static_cast<std::uint32_t>(t), call_.greedy, mask);
  if (finite < count) {
    note_failure({t, first + finite, why_not_finite(t, first + finite), true});
    return false;
  }
  for (std::size_t row = 0; row < count; ++row) {
    arrays.values[place + row] = desk.pass.value(row);
    arrays.log_probs[place + row] = desk.pass.log_prob(row);
  }
  write_actions(desk, count);
  const std::size_t size = count * shape().action_size;
  if (shape().kind == ActionKind::kGaussian) {
    std::copy_n(desk.pass.reals(0), size, static_cast<float*>(arrays.actions) + place * shape().action_size);
  } else {
    std::copy_n(desk.pass.choices(0), size, static_cast<std::int32_t*>(arrays.actions) + place * shape().action_size);
  }
  return true;
}

// Why a policy's output is not finite: the observation that the environment gave is not, or else the weights are to
// blame.
std::string Rollout::why_not_finite(std::size_t t, std::size_t env) const {
  const raceway_layout& layout = pool_.layout();
  const std::string who = "environment " + std::to_string(env) + " of " + pool_.table().name;
  const std::string when = "step " + std::to_string(t) + " of the rollout";
  std::size_t entry = 0;
  for (std::size_t leaf = 0; leaf < layout.num_obs; ++leaf) {
    const std::size_t size = elements_of(layout.obs[leaf]);
    if (layout.obs[leaf].space != RACEWAY_DISCRETE) {
      const float* row =
          static_cast<const float*>(call_.arrays.obs[leaf]) + (t * pool_.settings().num_envs + env) * size;
      const float* wrong = std::find_if_not(row, row + size, [](float number) { return std::isfinite(number); });
      if (wrong != row + size) {
        const std::string value = std::isnan(*wrong) ? "nan" : *wrong > 0 ? "inf" : "-inf";
        const std::string where = std::to_string(entry + static_cast<std::size_t>(wrong - row));
        return who + " gave " + value + " in entry " + where + " of its observation before " + when +
               ". Correct the environment; raceway check tests it.";
      }
    }
    entry += size;
  }
  return "the policy's output for " + who + " in " + when +
         " is not finite, though the observation is: training has diverged. A lower learning_rate may help.";
}

// The environment gets its own type of number, within its bounds.
void Rollout::write_actions(Desk& desk, std::size_t count) const {
  const raceway_column& column = pool_.layout().action;
  const std::size_t size = shape().action_size;
  with_type(column.dtype, [&](auto* type) {
    using Number = std::remove_const_t<std::remove_pointer_t<decltype(type)>>;
    auto* to = reinterpret_cast<Number*>(desk.actions.data());
    if (shape().kind != ActionKind::kGaussian) {
      const std::int32_t* choices = desk.pass.choices(0);
      for (std::size_t i = 0; i < count * size; ++i) to[i] = static_cast<Number>(choices[i]);
      return;
    }
    for (std::size_t row = 0; row < count; ++row) {
      for (std::size_t i = 0; i < size; ++i) {
        auto action = static_cast<Number>(desk.pass.reals(row)[i]);
        if (column.low) {
          const auto low = static_cast<Number>(column.low[i]), high = static_cast<Number>(column.high[i]);
          action = action < low ? low : action > high ? high : action;
        }
        *to++ = action;
      }
    }
  });
}

bool Rollout::step(Desk& desk, std::size_t t, std::size_t first, std::size_t count) {
  raceway_error error;
  error.text[0] = '\0';
  const std::int64_t failed = pool_.step_rows(desk.batch, 0, count, &error);
  if (failed >= 0) {
    const std::size_t env = first + static_cast<std::size_t>(failed);
    note_failure({t, env,
                  "environment " + std::to_string(env) + " of " + pool_.table().name + " failed in step " +
                      std::to_string(t) + " of the rollout: " + error.text +
                      ". The rollout is lost; reset the environments before the next one.",
                  false});
    return false;
  }
  const RolloutArrays& arrays = call_.arrays;
  const std::size_t place = t * pool_.settings().num_envs + first;
  std::copy_n(desk.batch.terminated, count, arrays.terminated + place);
  std::copy_n(desk.batch.truncated, count, arrays.truncated + place);
  std::fill_n(arrays.final_values + place, count, 0.0F);
  std::fill_n(arrays.episode_returns + place, count, 0.0F);
  std::fill_n(arrays.episode_lengths + place, count, 0);
  float* rewards = arrays.rewards + place;
  unsigned ended = 0, cut_off = 0;
  for (std::size_t row = 0; row < count; ++row) {
    rewards[row] = static_cast<float>(desk.batch.reward[row]);
    ended |= desk.batch.terminated[row] | desk.batch.truncated[row];
    cut_off |= desk.batch.truncated[row] & ~desk.batch.terminated[row] & 1U;
  }
  if (!info_columns_.empty()) add_infos(desk, first, count);
  if (ended != 0) note_episodes(desk, t, first, count);
  return cut_off == 0 || value_final(desk, t, first, count);
}

void Rollout::note_episodes(const Desk& desk, std::size_t t, std::size_t first, std::size_t count) const {
  const std::size_t place = t * pool_.settings().num_envs + first;
  for (std::size_t row = 0; row < count; ++row) {
    if (!desk.batch.terminated[row] && !desk.batch.truncated[row]) continue;
    call_.arrays.episode_returns[place + row] = static_cast<float>(desk.batch.episode_return[row]);
    call_.arrays.episode_lengths[place + row] = static_cast<std::int32_t>(desk.batch.episode_length[row]);
  }
}

// An episode that was cut off goes on in the value of its true last observation.
bool Rollout::value_final(Desk& desk, std::size_t t, std::size_t first, std::size_t count) {
  std::size_t envs[kMostRows], cut = 0;
  for (std::size_t row = 0; row < count; ++row) {
    if (!desk.batch.truncated[row] || desk.batch.terminated[row]) continue;
    const bool inside = with_type(pool_.layout().obs[0].dtype, [&](auto* type) {
      return desk.pass.encode(*network_, cut, static_cast<decltype(type)>(desk.batch.final_obs) + row * obs_size_);
    });
    if (!inside) {
      note_failure({t, first + row,
                    "environment " + std::to_string(first + row) + " of " + pool_.table().name +
                        " gave a last observation outside its space in step " + std::to_string(t) + " of the rollout.",
                    false});
      return false;
    }
    envs[cut++] = first + row;
  }
  desk.pass.forward(*network_, cut, false);
  float* values = call_.arrays.final_values + t * pool_.settings().num_envs;
  for (std::size_t i = 0; i < cut; ++i) values[envs[i]] = desk.pass.value(i);
  return true;
}

// Where an episode ended, the step's own info is that of its end; the other row is the next episode's first.
void Rollout::add_infos(const Desk& desk, std::size_t first, std::size_t count) {
  const std::size_t names = info_columns_.size();
  for (std::size_t i = 0; i < names; ++i) {
    const raceway_column& column = pool_.layout().info[info_columns_[i]];
    const void *stepped = desk.batch.info[info_columns_[i]], *last = desk.batch.final_info[info_columns_[i]];
    for (std::size_t row = 0; row < count; ++row) {
      const bool ended = desk.batch.terminated[row] || desk.batch.truncated[row];
      info_sums_[(first + row) * names + i] += number_at(column, ended ? last : stepped, row);
    }
  }
}

}  // namespace raceway
