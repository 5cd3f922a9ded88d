// Environments that write where they must not: a guarded pool says so, and what they did.
#include "adapter.hpp"
#include "check.hpp"
#include "pool.hpp"

using namespace raceway;

namespace {

enum Fault : std::int64_t { kNone, kPast, kFarPast, kBefore, kUnset, kInfoPast, kStructPast, kAction, kThrows };

// Does what its action says, in a struct of three numbers.
struct Vandal {
  using Scalar = float;
  using Action = std::int64_t;
  static constexpr std::size_t kObsSize = 3, kActionSize = 1;

  static Spaces spaces() {
    return {{box<float>({0, 0, 0}, {9, 9, 9})}, discrete(9), {entries<std::int32_t>("pair", 2)}};
  }
  void reset(Random&) { fault_ = kNone; }
  Step step(const Action* action, Random&) {
    fault_ = *action;
    if (fault_ == kThrows) throw std::runtime_error("it throws");
    if (fault_ == kAction) *const_cast<Action*>(action) = 0;
    volatile std::size_t next = 1;
    if (fault_ == kStructPast) (&last_)[next] = 7;
    return {1.0, fault_ == kFarPast};
  }
  void observe(float* row) const {
    for (std::size_t i = 0; i < 3; ++i) row[i] = 1.0F;
    volatile std::ptrdiff_t beyond = fault_ == kPast ? 3 : fault_ == kFarPast ? 100 : fault_ == kBefore ? -1 : 0;
    row[beyond] = 2.0F;
  }
  void info(InfoRow row) const {
    volatile std::size_t beyond = fault_ == kInfoPast ? 2 : 0;
    row.entry<std::int32_t>(0, 2)[beyond] = 5;
  }
  template <class Archive>
  void archive(Archive& archive) {
    archive("fault", fault_);
    archive("last", last_);
  }

 private:
  std::int64_t fault_ = kNone;
  std::int64_t last_ = 0;
};

// Writes only the first of its two numbers, or one more part of its state with every step.
struct Careless {
  using Scalar = std::uint8_t;
  using Action = std::int64_t;
  static constexpr std::size_t kObsSize = 2, kActionSize = 1;

  static Spaces spaces() { return {{box<std::uint8_t>({0, 0}, {255, 255})}, discrete(3)}; }
  void reset(Random&) { parts_.assign(2, 1.0); }
  Step step(const Action* action, Random&) {
    both_ = *action != 1;
    if (*action == 2) parts_.push_back(1.0);
    return {1.0, false};
  }
  void observe(std::uint8_t* row) const {
    row[0] = 0xA9;  // what an unset row is filled with
    if (both_) row[1] = 0x56;
  }
  template <class Archive>
  void archive(Archive& archive) {
    archive("parts", parts_);
  }

 private:
  bool both_ = true;
  std::vector<double> parts_{1.0, 1.0};
};

template <class Env>
struct Guarded {
  explicit Guarded(raceway_autoreset autoreset = RACEWAY_NEXT_STEP)
      : pool(*Adapter<Env>::table(), std::vector<Configuration>(4, configure(*Adapter<Env>::table(), {})), {0, 0, 0, 0},
             {4, 4, 2, autoreset, false, false, true}),
        memory(pool.full_rows().bytes()) {
    pool.reset(memory.data(), nullptr, nullptr);
  }
  // Environment 2 gets this action, the others 0.
  void step(std::int64_t action) {
    std::fill_n(static_cast<std::int64_t*>(pool.actions()), 4, 0);
    static_cast<std::int64_t*>(pool.actions())[2] = action;
    pool.step(memory.data());
  }
  typename Env::Scalar* obs() { return static_cast<typename Env::Scalar*>(pool.full_rows().bind(memory.data()).obs); }

  Pool pool;
  Memory memory;
};

CASE("a guarded pool names what was written outside, and the others go on") {
  const std::pair<Fault, const char*> expected[] = {
      {kPast,
       "environment 2 of  failed: observe() writes past the end of its row, for which kObsSize is 3: entry 3, counted "
       "from 0, was written"},
      {kFarPast, "entry 100, counted from 0, was written"},
      {kBefore, "observe() writes before the beginning of its row, for which kObsSize is 3"},
      {kInfoPast, "info() writes past the end of column 'pair', whose size is 2: entry 2"},
      {kStructPast, "it writes past the end of its own struct"},
      {kAction, "step() changes its action"},
  };
  for (const auto& [fault, text] : expected) {
    for (const auto autoreset : {RACEWAY_NEXT_STEP, RACEWAY_SAME_STEP}) {
      Guarded<Vandal> rig(autoreset);
      rig.step(kNone);
      CHECK_THROWS(BoundsError, text, rig.step(fault));
      CHECK_EQUAL(rig.obs()[3 * 3 + 2], 1.0F);
      CHECK_THROWS(ResetNeeded, "environment 2", rig.step(kNone));
      rig.pool.reset(rig.memory.data(), nullptr, nullptr);
      rig.step(kNone);
    }
  }
}

CASE("what an environment throws is told as ever") {
  Guarded<Vandal> rig;
  try {
    rig.step(kThrows);
    CHECK(false);
  } catch (const BoundsError&) {
    CHECK(false);
  } catch (const EnvError& error) {
    CHECK(std::string(error.what()).find("it throws") != std::string::npos);
  }
}

CASE("a number that is left unset is told from one that looks so") {
  Guarded<Careless> rig;
  rig.step(0);
  CHECK_EQUAL(static_cast<int>(rig.obs()[0]), 0xA9);
  CHECK_EQUAL(static_cast<int>(rig.obs()[1]), 0x56);
  CHECK_THROWS(BoundsError, "observe() leaves entry 1 of its row, counted from 0, as it was: kObsSize is 2",
               rig.step(1));
}

CASE("a state of another size is refused") {
  Guarded<Careless> rig;
  std::vector<std::byte> row(rig.pool.state_bytes());
  rig.pool.save(2, row.data());
  rig.step(2);
  CHECK_THROWS(BoundsError, "archive() writes more than the 16 bytes of its state", rig.pool.save(2, row.data()));
}

}  // namespace
