// What the header of an environment of one's own includes. It ends with
//
//   RACEWAY_ENV(MyTask, "MyTask-v0", 500)   // the struct, its id, after how many steps an episode is cut off (0:
//   never)
//
// and `raceway.load_native` compiles it to a library that is linked with nothing: what only the pool's side can compute
// is asked for through a table.
#pragma once

#include "adapter.hpp"
#include "env.hpp"
#include "picture.hpp"

namespace raceway {

inline const raceway_host* current_host = nullptr;

inline double Random::normal() {
  return current_host->standard_normal(&storage_);
}

template <class Env>
const raceway_library* library_of(const raceway_host* host, const char* id, std::int64_t max_episode_steps) noexcept {
  static const raceway_table kTable = [id] {
    raceway_table table = *Adapter<Env, true>::table();
    table.name = id;
    return table;
  }();
  static const raceway_library kLibrary{RACEWAY_TABLE_VERSION, sizeof(raceway_library), id, max_episode_steps, &kTable};
  if (host->version == RACEWAY_TABLE_VERSION) current_host = host;  // else nobody will call what needs it
  return &kLibrary;
}

// What an environment must have, so that an error names it instead of the place where it was missed.
template <class Env>
concept IsComplete = requires { sizeof(Env); };
template <class Env>
concept HasTypes = requires {
  typename Env::Scalar;
  typename Env::Action;
};
template <class Env>
concept HasSizes = (requires { Env::kObsSize; } || requires(const Env& env) { env.obs_size(); }) &&
                   (requires { Env::kActionSize; } || requires(const Env& env) { env.action_size(); });
template <class Env>
concept HasSpaces = requires(const ConfigOf<Env>& config) { Env::spaces(config); } || requires { Env::spaces(); };
template <class Env>
concept CanBeMade = std::is_constructible_v<Env, const ConfigOf<Env>&> || std::is_default_constructible_v<Env>;
template <class Env>
concept CanReset = requires(Env& env, Random& random, const double* options) { env.reset(random, options); } ||
                   requires(Env& env, Random& random) { env.reset(random); };
template <class Env>
concept CanStep = requires(Env& env, const typename Env::Action* action, Random& random) {
  { env.step(action, random) } -> std::same_as<Step>;
};
template <class Env>
concept CanObserve = requires(const Env& env, typename Env::Scalar* row) { env.observe(row); };
template <class Env>
concept CanArchive = requires(Env& env, Save& archive) { env.archive(archive); };
template <class Env>
concept HasPictureSize = !requires(const Env& env, Picture& picture) { env.draw(picture); } || requires {
  Env::kPictureWidth;
  Env::kPictureHeight;
};

}  // namespace raceway

#define RACEWAY_ENV(Env, id, max_episode_steps)                                                                      \
  static_assert(::raceway::IsComplete<Env>,                                                                          \
                "RACEWAY_ENV stands after the whole struct " #Env ": is it ended by `};`");                          \
  static_assert(::raceway::HasTypes<Env>, #Env " needs `using Scalar = float;` and `using Action = std::int64_t;`"); \
  static_assert(::raceway::HasSizes<Env>,                                                                            \
                #Env " needs `static constexpr std::size_t kObsSize = ..., kActionSize = ...;`");                    \
  static_assert(::raceway::HasSpaces<Env>, #Env " needs `static Spaces spaces()`, or with a const Config&");         \
  static_assert(::raceway::CanBeMade<Env>, #Env " needs a constructor that takes a const Config&, or nothing");      \
  static_assert(::raceway::CanReset<Env>, #Env " needs `void reset(Random&)`");                                      \
  static_assert(::raceway::CanStep<Env>, #Env " needs `Step step(const Action*, Random&)`");                         \
  static_assert(::raceway::CanObserve<Env>, #Env " needs `void observe(Scalar* row) const`");                        \
  static_assert(::raceway::CanArchive<Env>, #Env " needs `template <class Archive> void archive(Archive&)`");        \
  static_assert(::raceway::HasPictureSize<Env>,                                                                      \
                #Env " draws, and needs `static constexpr int kPictureWidth = ..., kPictureHeight = ...;`");         \
  extern "C" __attribute__((visibility("default"), used)) inline const raceway_library* raceway_native_library(      \
      const raceway_host* host) {                                                                                    \
    return ::raceway::library_of<Env>(host, id, max_episode_steps);                                                  \
  }
