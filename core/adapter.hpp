// Makes the plain C table of one environment struct: the loops over a chunk, with the struct's code inlined in them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <new>

#include "parts.hpp"

namespace raceway {

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// `Checks`: whether infos are held against what spaces() names. Tasks that are built in have tests instead.
template <class Env, bool Checks = false>
class Adapter : public Parts<Env> {
  using Base = Parts<Env>;

 public:
  using Base::action_size, Base::made, Base::obs_size, Base::restart;
  using Base::kHasInfo, Base::kHasPicture, Base::kNumFaults;
  using Configuration = ConfigurationOf<Env>;

  static const raceway_table* table() {
    static const raceway_table kTable{
        RACEWAY_TABLE_VERSION,
        sizeof(raceway_table),
        Base::name(),
        Base::parameters().size(),
        Base::parameters().data(),
        Base::options().size(),
        Base::options().data(),
        sizeof(Env),
        alignof(Env),
        configure,
        release,
        layout,
        construct,
        destroy,
        reset,
        step,
        observe,
        save,
        load,
        Base::picture_width(),
        Base::picture_height(),
        kHasPicture ? draw : nullptr,
    };
    return &kTable;
  }

  // Starts an episode.
  static void begin(Env& env, const raceway_batch& batch, std::size_t i, const double* options) {
    Random generator(batch.random[i]);
    restart(env, generator, options);
    batch.episodes[i].steps = 0;
    batch.episodes[i].status = RACEWAY_RUNNING;
    raceway_record& record = batch.records[i];
    record.number += 1;
    record.reward_sum = 0.0;
    record.start_s = batch.episode_time ? seconds_now() : 0.0;
  }

 private:
  using Scalar = typename Env::Scalar;
  using Action = typename Env::Action;
  static constexpr auto kFallbacks = Base::fallbacks();

  static void* configure(const raceway_value* values, std::size_t count, raceway_error* error) noexcept {
    try {
      return new Configuration(Arguments({values, count}));
    } catch (...) {
      tell_current(error);
      return nullptr;
    }
  }

  static void release(void* configuration) noexcept { delete static_cast<Configuration*>(configuration); }

  static const raceway_layout* layout(const void* configuration) noexcept {
    return &static_cast<const Configuration*>(configuration)->layout;
  }

  static std::int32_t construct(void* env, const void* configuration, raceway_error* error) noexcept {
    try {
      new (env) Env(made(static_cast<const Configuration*>(configuration)->config));
      return 0;
    } catch (...) {
      return tell_current(error);
    }
  }

  static void destroy(void* env) noexcept { static_cast<Env*>(env)->~Env(); }

  static std::int64_t reset(const raceway_batch* batch, std::size_t first, std::size_t count,
                            raceway_error* error) noexcept {
    const double* options = batch->options ? batch->options : kFallbacks.data();
    return each(*batch, first, count, error, [&](Env& env, std::size_t i) {
      const bool wanted = !batch->reset_mask || batch->reset_mask[i];
      if (wanted) {
        begin(env, *batch, i, options);
        write_flags(*batch, i, {0.0, false}, false);
      } else if constexpr (kNumFaults > 0) {
        batch->fault[i] = 0;
      }
      write_rows(env, batch->layout, batch->obs, batch->info, i);
      mark_info(*batch, i, wanted, false);
    });
  }

  static std::int64_t step(const raceway_batch* batch, std::size_t first, std::size_t count,
                           raceway_error* error) noexcept {
    const bool recorded = batch->episode_time != nullptr;
    switch (batch->autoreset) {
      case RACEWAY_NEXT_STEP:
        return recorded ? step_in<RACEWAY_NEXT_STEP, true>(*batch, first, count, error)
                        : step_in<RACEWAY_NEXT_STEP, false>(*batch, first, count, error);
      case RACEWAY_SAME_STEP:
        return recorded ? step_in<RACEWAY_SAME_STEP, true>(*batch, first, count, error)
                        : step_in<RACEWAY_SAME_STEP, false>(*batch, first, count, error);
      default:
        return recorded ? step_in<RACEWAY_DISABLED, true>(*batch, first, count, error)
                        : step_in<RACEWAY_DISABLED, false>(*batch, first, count, error);
    }
  }

  // Everything is inlined ("flatten"), the environment's own step before all. The batch is taken by value: a flag
  // written through a byte pointer could otherwise be one of its pointers, and all of them would be read again for
  // every environment.
  template <raceway_autoreset Mode, bool Recorded>
  [[gnu::flatten]] static std::int64_t step_in(const raceway_batch batch, std::size_t first, std::size_t count,
                                               raceway_error* error) noexcept {
    const auto* actions = static_cast<const Action*>(batch.actions);
    return each(batch, first, count, error, [&](Env& env, std::size_t i) {
      raceway_episode& episode = batch.episodes[i];
      if (Mode == RACEWAY_NEXT_STEP && episode.status == RACEWAY_ENDED) {
        begin(env, batch, i, kFallbacks.data());
        write_flags(batch, i, {0.0, false}, false);
        write_rows(env, batch.layout, batch.obs, batch.info, i);
        mark_info(batch, i, true, false);
        return;
      }
      Random generator(batch.random[i]);
      const Step result = env.step(actions + i * action_size(env), generator);
      episode.steps += 1;
      const bool truncated = episode.limit > 0 && episode.steps >= episode.limit;
      write_flags(batch, i, result, truncated);
      if constexpr (Recorded) batch.records[i].reward_sum += result.reward;
      bool stepped = true;
      if (result.terminated || truncated) {
        episode.status = RACEWAY_ENDED;
        if constexpr (Recorded) record(batch, i);
        if constexpr (Mode == RACEWAY_SAME_STEP) {
          write_rows(env, batch.layout, batch.final_obs, batch.final_info, i);
          begin(env, batch, i, kFallbacks.data());
          stepped = false;
        }
      }
      write_rows(env, batch.layout, batch.obs, batch.info, i);
      mark_info(batch, i, true, stepped);
    });
  }

  static void observe(const raceway_batch* batch, std::size_t first, std::size_t count) noexcept {
    for (std::size_t i = first; i < first + count; ++i) {
      const Env& env = static_cast<const Env*>(batch->envs)[i];
      env.observe(static_cast<Scalar*>(batch->obs) + i * obs_size(env));
      if constexpr (kHasInfo) {
        if (batch->info) show_info(env, *batch, i);
      }
    }
  }

  static void save(const void* env, void* row) noexcept {
    Save archive(row);
    const_cast<Env*>(static_cast<const Env*>(env))->archive(archive);  // Save only reads
  }

  static std::int32_t load(void* env, const void* row, raceway_error* error) noexcept {
    std::vector<char> before;
    try {
      Describe describe;
      static_cast<Env*>(env)->archive(describe);
      std::size_t size = 0;
      for (const auto& column : describe.columns) size += bytes_of(column.view());
      before.resize(size);
    } catch (...) {
      return tell_current(error);
    }
    save(env, before.data());
    try {
      Load archive(row);
      static_cast<Env*>(env)->archive(archive);
      std::string flaw = archive.flaw();
      if constexpr (requires(const Env& sample) { sample.flaw(); }) {
        if (flaw.empty()) flaw = static_cast<const Env*>(env)->flaw();
      }
      if (!flaw.empty()) throw std::invalid_argument(flaw);
      if constexpr (requires(Env& sample) { sample.restored(); }) static_cast<Env*>(env)->restored();
    } catch (...) {
      Load undo(before.data());
      static_cast<Env*>(env)->archive(undo);
      const std::int32_t told = tell_current(error);
      try {
        if constexpr (requires(Env& sample) { sample.restored(); }) static_cast<Env*>(env)->restored();
      } catch (...) {  // it was so before: what can be done was done
      }
      return told;
    }
    return 0;
  }

  static std::int32_t draw([[maybe_unused]] const void* env, [[maybe_unused]] std::uint8_t* pixels,
                           [[maybe_unused]] raceway_error* error) noexcept {
    if constexpr (kHasPicture) {
      try {
        Picture picture(pixels, Base::picture_width(), Base::picture_height());
        static_cast<const Env*>(env)->draw(picture);
      } catch (...) {
        return tell_current(error);
      }
    }
    return 0;
  }

  // Runs `body(env, i)` over the chunk. An environment that throws is left FRESH; the rest go on.
  template <class Body>
  static std::int64_t each(const raceway_batch& batch, std::size_t first, std::size_t count, raceway_error* error,
                           Body body) noexcept {
    auto* envs = static_cast<Env*>(batch.envs);
    std::int64_t failed = -1;
    std::size_t i = first;
    while (i < first + count) {
      try {
        for (; i < first + count; ++i) body(envs[i], i);
      } catch (...) {
        batch.episodes[i].status = RACEWAY_FRESH;
        if (failed < 0) {
          failed = static_cast<std::int64_t>(i);
          tell_current(error);
        }
        ++i;
      }
    }
    return failed;
  }

  static void write_flags(const raceway_batch& batch, std::size_t i, const Step& step, bool truncated) {
    batch.reward[i] = step.reward;
    batch.terminated[i] = step.terminated;
    batch.truncated[i] = truncated;
    if constexpr (kNumFaults > 0) {
      batch.fault[i] = step.fault;
      // Counts may be read while others are stepping.
      if (step.fault != 0) std::atomic_ref(batch.records[i].faults).fetch_add(1, std::memory_order_relaxed);
    }
  }

  static void write_rows(const Env& env, const raceway_layout* layout, void* obs, void* const* info, std::size_t i) {
    env.observe(static_cast<Scalar*>(obs) + i * obs_size(env));
    if constexpr (kHasInfo) env.info(InfoRow(info, i, Checks ? layout : nullptr));
  }

  static void show_info(const Env& env, const raceway_batch& batch, std::size_t i) noexcept {
    try {
      env.info(InfoRow(batch.info, i, Checks ? batch.layout : nullptr));
    } catch (...) {  // as every reset and step says, which is where it can be told
    }
  }

  // Says which info entries a row has: none if it was left out of a reset; what it has not is zero.
  static void mark_info(const raceway_batch& batch, std::size_t i, bool any, bool stepped) {
    if constexpr (kHasInfo) {
      for (std::size_t c = 0; c < batch.layout->num_info; ++c) {
        const raceway_column& column = batch.layout->info[c];
        const bool present = any && (stepped || column.when == RACEWAY_ALWAYS);
        batch.info_present[c][i] = present;
        if (!present) std::memset(static_cast<char*>(batch.info[c]) + i * bytes_of(column), 0, bytes_of(column));
      }
    }
  }

  static void record(const raceway_batch& batch, std::size_t i) {
    batch.episode_return[i] = batch.records[i].reward_sum;
    batch.episode_length[i] = batch.episodes[i].steps;
    batch.episode_time[i] = seconds_now() - batch.records[i].start_s;
  }

  // What the exception being handled says: no exception crosses the table.
  static std::int32_t tell_current(raceway_error* error) noexcept {
    try {
      throw;
    } catch (const std::exception& failure) {
      return tell(error, failure.what());
    } catch (...) {
      return tell(error, "it threw something that is not a std::exception");
    }
  }

  static std::int32_t tell(raceway_error* error, const char* text) noexcept {
    std::snprintf(error->text, sizeof error->text, "%s", text);
    std::size_t end = std::strlen(error->text);
    if (end + 1 == sizeof error->text) {  // cut off: not within a character of several bytes
      while (end > 0 && (error->text[end - 1] & 0xC0) == 0x80) --end;
      if (end > 0 && (error->text[end - 1] & 0x80) != 0) --end;
      error->text[end] = '\0';
    }
    return -1;
  }
};

}  // namespace raceway
