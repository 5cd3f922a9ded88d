// How actions are drawn from what a network gives, and how likely they were.
#include <algorithm>
#include <cmath>

#include "policy.hpp"

namespace raceway {
namespace {

constexpr float kHalfLogTwoPi = 0.918938533F;

bool finite(float x) {
  return x - x == 0.0F;
}

}  // namespace

std::size_t Pass::sample(const Network& network, std::size_t rows, const ActionKeys& keys, std::uint32_t first_env,
                         std::uint32_t step, bool greedy, const std::uint8_t* mask) {
  if (!greedy) {
    for (std::size_t i = 0; i < network.shape().num_draws(); ++i) {
      network.kernel().words(keys[i].a, keys[i].b, first_env, step, words_a_.data() + i * kLanes,
                             words_b_.data() + i * kLanes);
    }
  }
  switch (network.shape().kind) {
    case ActionKind::kCategorical:
      return sample_categorical(network, rows, greedy, mask);
    case ActionKind::kGaussian:
      return sample_gaussian(network, rows, greedy);
    default:
      return sample_bernoulli(network, rows, greedy, mask);
  }
}

// log π(a) = logit(a) - max - ln Σ exp(logit - max). A mask that allows nothing is as good as none.
std::size_t Pass::sample_categorical(const Network& network, std::size_t rows, bool greedy, const std::uint8_t* mask) {
  const std::vector<std::size_t>& nvec = network.shape().nvec;
  const std::size_t num_logits = network.shape().num_logits();
  const auto part = [&](std::size_t row, std::size_t start, std::size_t count) -> const std::uint8_t* {
    const std::uint8_t* marks = mask ? mask + row * num_logits + start : nullptr;
    return marks && std::count(marks, marks + count, 0) < static_cast<std::ptrdiff_t>(count) ? marks : nullptr;
  };
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t j = 0, start = 0; j < nvec.size(); start += nvec[j++]) {
      const float* logits = logits_.data() + row * logit_stride_ + start;
      const std::uint8_t* marks = part(row, start, nvec[j]);
      float most = -INFINITY;
      for (std::size_t i = 0; i < nvec[j]; ++i) most = (!marks || marks[i]) && logits[i] > most ? logits[i] : most;
      most_[row * action_size_ + j] = most;
      float* weights = weights_.data() + row * logit_stride_ + start;
      for (std::size_t i = 0; i < nvec[j]; ++i) weights[i] = logits[i] - most;
    }
  }
  network.kernel().exponentials(weights_.data(), rows * logit_stride_);
  std::size_t finite_rows = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    bool good = true;
    for (std::size_t j = 0, start = 0; j < nvec.size(); start += nvec[j++]) {
      const float* weights = weights_.data() + row * logit_stride_ + start;
      const std::uint8_t* marks = part(row, start, nvec[j]);
      float total = 0.0F;
      for (std::size_t i = 0; i < nvec[j]; ++i) total += !marks || marks[i] ? weights[i] : 0.0F;
      totals_.data()[j * kLanes + row] = total;
      good = good && finite(total);
      const float part_of_all = greedy ? 0.0F : uniform(words_a_.data()[j * kLanes + row]) * total;
      choices_[row * action_size_ + j] = choose(weights, nvec[j], part_of_all, greedy, marks);
    }
    if (good && finite_rows == row) finite_rows = row + 1;
  }
  network.kernel().logarithms(totals_.data(), nvec.size() * kLanes);
  for (std::size_t row = 0; row < rows; ++row) {
    float sum = 0.0F;
    for (std::size_t j = 0, start = 0; j < nvec.size(); start += nvec[j++]) {
      const auto choice = start + static_cast<std::size_t>(choices_[row * action_size_ + j]);
      const float shifted = logits_.data()[row * logit_stride_ + choice] - most_[row * action_size_ + j];
      sum += shifted - totals_.data()[j * kLanes + row];
    }
    log_probs_[row] = sum;
  }
  return finite_rows;
}

// The first value whose weights, summed up to it, exceed `level`; the greedy one has the largest weight.
std::int32_t Pass::choose(const float* weights, std::size_t count, float level, bool greedy, const std::uint8_t* mask) {
  std::size_t chosen = 0;
  float sum = greedy ? -1.0F : 0.0F;
  for (std::size_t i = 0; i < count; ++i) {
    if (mask && !mask[i]) continue;
    if (greedy) {
      if (weights[i] <= sum) continue;
      sum = weights[i];
      chosen = i;
      continue;
    }
    chosen = i;
    sum += weights[i];
    if (sum > level) break;
  }
  return static_cast<std::int32_t>(chosen);
}

std::size_t Pass::sample_gaussian(const Network& network, std::size_t rows, bool greedy) {
  for (std::size_t i = 0; i < network.shape().num_draws() && !greedy; ++i) {
    float* pair = normals_.data() + 2 * i * kLanes;
    network.kernel().normals(words_a_.data() + i * kLanes, words_b_.data() + i * kLanes, pair, pair + kLanes);
  }
  std::size_t finite_rows = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    bool good = true;
    float sum = 0.0F;
    for (std::size_t j = 0; j < action_size_; ++j) {
      const float z = greedy ? 0.0F : normals_.data()[j * kLanes + row];
      const float action = logits_.data()[row * logit_stride_ + j] + network.std(j) * z;
      good = good && finite(action);
      reals_[row * action_size_ + j] = action;
      sum += -0.5F * z * z - network.log_std(j) - kHalfLogTwoPi;
    }
    log_probs_[row] = sum;
    if (good && finite_rows == row) finite_rows = row + 1;
  }
  return finite_rows;
}

// p = 1 / (1 + e^-x); ln p = min(x, 0) - ln(1 + e^-|x|), and the same with -x for 1 - p. What is masked is 0 for sure.
std::size_t Pass::sample_bernoulli(const Network& network, std::size_t rows, bool greedy, const std::uint8_t* mask) {
  const std::size_t used = rows * logit_stride_;
  for (std::size_t i = 0; i < used; ++i) weights_.data()[i] = -std::abs(logits_.data()[i]);
  network.kernel().exponentials(weights_.data(), used);
  std::size_t finite_rows = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    bool good = true;
    for (std::size_t j = 0; j < action_size_; ++j) {
      const float x = logits_.data()[row * logit_stride_ + j];
      float& weight = weights_.data()[row * logit_stride_ + j];
      const float likely = 1.0F / (1.0F + weight), chance = x < 0.0F ? weight * likely : likely;
      const bool one = greedy ? x > 0.0F : uniform(words_a_.data()[j * kLanes + row]) < chance;
      choices_[row * action_size_ + j] = one && (!mask || mask[row * action_size_ + j]);
      good = good && finite(x);
      weight += 1.0F;
    }
    if (good && finite_rows == row) finite_rows = row + 1;
  }
  for (std::size_t i = 0; i < used; ++i) weights_.data()[i] = std::max(weights_.data()[i], 1.0F);  // the padding too
  network.kernel().logarithms(weights_.data(), used);
  for (std::size_t row = 0; row < rows; ++row) {
    float sum = 0.0F;
    for (std::size_t j = 0; j < action_size_; ++j) {
      if (mask && !mask[row * action_size_ + j]) continue;
      const float x = logits_.data()[row * logit_stride_ + j];
      const float towards = choices_[row * action_size_ + j] ? x : -x;
      sum += std::min(towards, 0.0F) - weights_.data()[row * logit_stride_ + j];
    }
    log_probs_[row] = sum;
  }
  return finite_rows;
}

}  // namespace raceway
