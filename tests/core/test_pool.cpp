// The pool's synchronous side.
#include <sys/wait.h>

#include <cstring>

#include "check.hpp"
#include "pool.hpp"
#include "scripted.hpp"

using namespace raceway;
using namespace raceway::test;
using namespace std::chrono_literals;

namespace {

// Everything that a step wrote, one number per bit pattern.
std::uint64_t hash_of(const Rig<>& rig) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < rig.pool.settings().num_envs; ++i) {
    for (std::size_t k = 0; k < 3; ++k) {
      std::uint32_t bits = 0;
      const float value = rig.obs(i, k);
      std::memcpy(&bits, &value, sizeof bits);
      sum = sum * 0x100000001b3 ^ bits;
    }
    sum = sum * 0x100000001b3 ^ static_cast<std::uint64_t>(rig.rows.reward[i] * 1024);
    sum = sum * 0x100000001b3 ^ (rig.rows.terminated[i] + 2ULL * rig.rows.truncated[i]);
  }
  return sum;
}

}  // namespace

CASE("a step writes every environment's rows, for any number of workers") {
  for (const int workers : {1, 2, 4}) {
    Rig<> rig(settings(33, 33, workers));
    rig.reset();
    for (std::size_t env = 0; env < 33; ++env) CHECK_EQUAL(rig.obs(env, 0), 0.0F);
    for (std::size_t env = 0; env < 33; ++env) rig.act(env, static_cast<std::int64_t>(env));
    for (int step = 1; step <= 50; ++step) rig.pool.step(rig.full.data());
    for (std::size_t env = 0; env < 33; ++env) {
      CHECK_EQUAL(rig.obs(env, 0), 50.0F);
      CHECK_EQUAL(rig.obs(env, 1), 50.0F * static_cast<float>(env));
      CHECK_EQUAL(rig.rows.reward[env], static_cast<double>(env));
      CHECK_EQUAL(static_cast<std::int64_t*>(rig.rows.info[0])[env], 50);
      CHECK_EQUAL(static_cast<float*>(rig.rows.info[1])[2 * env + 1], -50.0F * static_cast<float>(env));
    }
  }
}

CASE("results do not depend on the number of workers or on when they come") {
  std::vector<std::uint64_t> sums;
  for (const int workers : {1, 2, 3, 8}) {
    Rig<> rig(settings(40, 40, workers), {integer("length", 7), real("delay_us", 20.0)}, 3, {integer("length", 2)});
    rig.reset();
    std::uint64_t sum = hash_of(rig);
    for (int step = 0; step < 60; ++step) {
      rig.step(step % 5);
      sum = sum * 31 + hash_of(rig);
    }
    sums.push_back(sum);
  }
  for (const std::uint64_t sum : sums) CHECK_EQUAL(sum, sums[0]);
}

CASE("next step: the step after an end is a reset that ignores its action") {
  Rig<> rig(settings(2, 2, 1), {integer("length", 3)});
  rig.reset();
  for (int i = 0; i < 3; ++i) rig.step(5);
  CHECK(rig.rows.terminated[1] && !rig.rows.truncated[1]);
  CHECK_EQUAL(rig.obs(1, 1), 15.0F);
  CHECK(rig.pool.ignores_action(1));
  rig.step(7);
  CHECK(!rig.rows.terminated[1]);
  CHECK_EQUAL(rig.rows.reward[1], 0.0);
  CHECK_EQUAL(rig.obs(1, 0), 0.0F);
  CHECK_EQUAL(rig.pool.record(1).number, 2);
  CHECK(!rig.pool.ignores_action(1));
  rig.step(7);
  CHECK_EQUAL(rig.obs(1, 1), 7.0F);
}

CASE("same step: the end and the new beginning come in one step") {
  Rig<> rig(settings(2, 2, 1, RACEWAY_SAME_STEP), {integer("length", 3)});
  rig.reset();
  for (int i = 0; i < 3; ++i) rig.step(5);
  CHECK(rig.rows.terminated[0]);
  CHECK_EQUAL(rig.rows.reward[0], 5.0);
  CHECK_EQUAL(rig.obs(0, 0), 0.0F);
  CHECK_EQUAL(rig.final_obs(0, 0), 3.0F);
  CHECK_EQUAL(rig.final_obs(0, 1), 15.0F);
  CHECK_EQUAL(static_cast<std::int64_t*>(rig.rows.final_info[0])[0], 3);
  CHECK_EQUAL(static_cast<std::int64_t*>(rig.rows.info[0])[0], 0);
}

CASE("disabled: a step after an end is refused until the environment is reset") {
  Rig<> rig(settings(3, 3, 1, RACEWAY_DISABLED), {}, 1, {integer("length", 2)});
  rig.reset();
  rig.step();
  rig.step();
  CHECK(rig.rows.terminated[1]);
  CHECK_THROWS(ResetNeeded, "environment 1", rig.step());
  rig.reset({0, 1, 0});
  CHECK_EQUAL(rig.obs(0, 0), 2.0F);  // the others are where they were
  CHECK_EQUAL(rig.obs(1, 0), 0.0F);
  rig.step();
  CHECK_EQUAL(rig.obs(0, 0), 3.0F);
  CHECK_EQUAL(rig.obs(1, 0), 1.0F);
}

CASE("an episode is truncated at its step limit, also when it ends there by itself") {
  Rig<> rig(settings(2, 2, 1), {}, 1, {integer("length", 4)}, 4);
  rig.pool.episode(0).limit = 3;
  rig.reset();
  for (int i = 0; i < 3; ++i) rig.step();
  CHECK(rig.rows.truncated[0] && !rig.rows.terminated[0]);
  CHECK(!rig.rows.truncated[1]);
  rig.step();
  CHECK(!rig.rows.truncated[0]);
  CHECK(rig.rows.truncated[1] && rig.rows.terminated[1]);
}

CASE("an episode that was loaded beyond its limit is truncated by its next step") {
  Rig<> rig(settings(1, 1, 1), {}, -1, {}, 10);
  rig.reset();
  rig.pool.episode(0).steps = 300;
  rig.step();
  CHECK(rig.rows.truncated[0]);
}

CASE("statistics of episodes are written when they end, if they are recorded") {
  for (const auto mode : {RACEWAY_NEXT_STEP, RACEWAY_SAME_STEP, RACEWAY_DISABLED}) {
    Rig<> rig(settings(2, 2, 1, mode, true), {integer("length", 3)});
    rig.reset();
    for (const std::int64_t action : {5, 1, 3}) rig.step(action);
    CHECK_EQUAL(rig.rows.episode_return[1], 9.0);
    CHECK_EQUAL(rig.rows.episode_length[1], 3);
    CHECK(rig.rows.episode_time[1] >= 0.0 && rig.rows.episode_time[1] < 60.0);
  }
}

CASE("a masked reset touches only what it marks, and hands out all observations") {
  Rig<> rig(settings(4, 4, 2));
  CHECK_THROWS(ResetNeeded, "environments 0 and 2", rig.reset({0, 1, 0, 1}));
  rig.reset();
  rig.step(2);
  const double start = 40.0;
  rig.reset({0, 1, 0, 1}, &start);
  for (std::size_t env = 0; env < 4; ++env) {
    CHECK_EQUAL(rig.obs(env, 0), env % 2 == 0 ? 1.0F : 0.0F);
    CHECK_EQUAL(rig.obs(env, 1), env % 2 == 0 ? 2.0F : 40.0F);
  }
  rig.reset();
  CHECK_EQUAL(rig.obs(0, 1), 0.0F);  // the options' fallbacks are back
}

CASE("a step before the first reset is refused") {
  Rig<> rig(settings(5, 5, 1));
  CHECK_THROWS(ResetNeeded, "environments 0, 1, 2 and 2 more", rig.step());
  rig.reset();
  rig.step();
}

CASE("of several that fail in one step the first by number is named, whatever the workers") {
  for (const int workers : {1, 4}) {
    Rig<> rig(settings(64, 64, workers), {integer("fail_at", 2), real("delay_us", 200.0)});
    rig.reset();
    rig.step();
    CHECK_THROWS(EnvError, "environment 0 of Scripted failed", rig.step());
    rig.reset();
    rig.step();
  }
}

CASE("a table of another version is refused") {
  raceway_table table = *Adapter<Scripted<float>>::table();
  table.version += 1;
  CHECK_THROWS(std::invalid_argument, "Compile it again", configure(table, {}));
}

CASE("an environment that fails is named, the others go on, and it works after its reset") {
  for (const int workers : {1, 3}) {
    Rig<> rig(settings(6, 6, workers), {}, 4, {integer("fail_at", 3)});
    rig.reset();
    rig.step();
    rig.step();
    CHECK_THROWS(EnvError, "environment 4 of Scripted failed: scripted failure", rig.step());
    CHECK_EQUAL(static_cast<int>(rig.pool.episode(4).status), static_cast<int>(RACEWAY_FRESH));
    CHECK_EQUAL(static_cast<int>(rig.pool.episode(3).status), static_cast<int>(RACEWAY_RUNNING));
    CHECK_THROWS(ResetNeeded, "environment 4", rig.step());
    CHECK_THROWS(ResetNeeded, "environment 4", rig.reset({1, 1, 1, 1, 0, 1}));
    rig.reset({0, 0, 0, 0, 1, 0});
    CHECK_EQUAL(rig.obs(4, 0), 0.0F);
    CHECK_EQUAL(rig.obs(5, 0), 3.0F);
    rig.step();
    CHECK_EQUAL(rig.obs(4, 0), 1.0F);
    CHECK_EQUAL(rig.obs(5, 0), 4.0F);
  }
}

CASE("a failure in a reset is told too, in every autoreset mode") {
  for (const auto mode : {RACEWAY_NEXT_STEP, RACEWAY_SAME_STEP}) {
    Rig<> rig(settings(3, 3, 1, mode), {integer("length", 2)}, 1, {integer("length", 2), integer("fail_in_reset", 2)});
    rig.reset();
    rig.step();
    CHECK_THROWS(EnvError, "environment 1 of Scripted failed: scripted failure in reset", rig.step(); rig.step());
    rig.reset();
    rig.step();
  }
}

CASE("a pool whose environment cannot be made throws, and leaves nothing behind") {
  for (const int workers : {1, 3}) {
    for (const int at : {0, 7}) {
      CHECK_EQUAL(live_envs.load(), 0);
      const raceway_table& table = *Adapter<Scripted<float>>::table();
      const std::vector<Configuration> configurations(8, configure(table, {}));
      constructions_left.store(at);
      CHECK_THROWS(EnvError, "it cannot be made",
                   Pool(table, configurations, std::vector<std::int32_t>(8), settings(8, 8, workers)));
      constructions_left.store(-1);
      CHECK_EQUAL(live_envs.load(), 0);
    }
  }
}

CASE("a pool destroys its environments when it is closed, and once") {
  Rig<> rig(settings(8, 8, 2));
  rig.reset();
  CHECK_EQUAL(live_envs.load(), 8);
  CHECK(rig.pool.close(Clock::now() + 10s));
  CHECK_EQUAL(live_envs.load(), 0);
  CHECK(rig.pool.close(Clock::now() + 10s));
}

CASE("arguments that are refused are told by the task's name") {
  const raceway_table& table = *Adapter<Scripted<float>>::table();
  CHECK_THROWS(std::invalid_argument, "Scripted: refused=True is refused.", configure(table, {integer("refused", 1)}));
}

CASE("a saved state goes on as the original, its vector and generator included") {
  Rig<> rig(settings(3, 3, 1), {integer("memory", 11)});
  CHECK_EQUAL(rig.pool.state_bytes(), (2 + 11 + 1) * sizeof(double));
  rig.reset();
  for (int i = 0; i < 5; ++i) rig.step(i);
  std::vector<char> state(rig.pool.state_bytes());
  rig.pool.save(1, state.data());
  const raceway_random random = rig.pool.random(1);
  const raceway_episode episode = rig.pool.episode(1);
  std::vector<std::uint64_t> expected;
  for (int i = 0; i < 20; ++i) rig.step(i), expected.push_back(hash_of(rig));

  Rig<> other(settings(3, 3, 2), {integer("memory", 11)});
  other.reset();
  for (int i = 0; i < 5; ++i) other.step(i);
  std::vector<char> noise(state.size(), 1);
  other.pool.load(1, noise.data());
  other.pool.load(1, state.data());
  other.pool.random(1) = random;
  other.pool.episode(1) = episode;
  other.pool.states_changed();
  other.pool.observe(other.full.data());
  CHECK_EQUAL(other.obs(1, 0), 5.0F);
  for (int i = 0; i < 20; ++i) {
    other.step(i);
    CHECK_EQUAL(hash_of(other), expected[static_cast<std::size_t>(i)]);
  }
}

CASE("a state that is refused leaves the environment as it was") {
  Rig<> rig(settings(2, 2, 1));
  rig.reset();
  rig.step(3);
  std::vector<char> before(rig.pool.state_bytes()), after(before.size()), refused(before.size(), 0);
  rig.pool.save(0, before.data());
  const std::int64_t steps = -1;
  std::memcpy(refused.data(), &steps, sizeof steps);
  CHECK_THROWS(std::invalid_argument, "environment 0 is refused", rig.pool.load(0, refused.data()));
  rig.pool.save(0, after.data());
  CHECK(before == after);
}

CASE("observations in double and in single precision are the same numbers") {
  Rig<float> single(settings(4, 4, 1));
  Rig<double> twice(settings(4, 4, 1));
  single.reset();
  twice.reset();
  CHECK_EQUAL(single.pool.layout().obs[0].dtype, static_cast<std::int32_t>(RACEWAY_FLOAT32));
  CHECK_EQUAL(twice.pool.layout().obs[0].dtype, static_cast<std::int32_t>(RACEWAY_FLOAT64));
  for (int i = 0; i < 10; ++i) {
    single.step(i);
    twice.step(i);
    for (std::size_t env = 0; env < 4; ++env) CHECK_EQUAL(single.obs(env, 2), static_cast<float>(twice.obs(env, 2)));
  }
}

CASE("the columns of a batch may be found while its rows are still being written") {
  Rig<> rig(settings(64, 64, 2), {real("delay_us", 20.0)});
  rig.reset();
  rig.act(1);
  for (int i = 0; i < 50; ++i) {
    rig.pool.begin_step(rig.full.data());
    CHECK(rig.pool.full_rows().bind(rig.full.data()).obs == rig.rows.obs);  // as the bindings do
    rig.pool.finish();
  }
}

CASE("a pool of one environment takes more workers, and none, as one") {
  for (const int workers : {0, 1, 64}) {
    Rig<> rig(settings(1, 1, workers));
    CHECK_EQUAL(rig.pool.workers(), 1);
    rig.reset();
    rig.step();
  }
}

CASE("two threads may not call at once, but one may receive while the other sends") {
  Rig<> rig(settings(4, 2, 2));
  const Pool::Turn calling(rig.pool, true, false);
  CHECK_THROWS(StateError, "another call is inside", Pool::Turn(rig.pool, true, false));
  CHECK_THROWS(StateError, "another call is inside", Pool::Turn(rig.pool, true, true));
  {
    const Pool::Turn receiving(rig.pool, false, true);
    CHECK_THROWS(StateError, "another call is inside", Pool::Turn(rig.pool, false, true));
  }
  const Pool::Turn again(rig.pool, false, true);
}

CASE("a turn that was refused leaves nothing locked") {
  Rig<> rig(settings(4, 2, 2));
  {
    const Pool::Turn receiving(rig.pool, false, true);
    CHECK_THROWS(StateError, "another call is inside", Pool::Turn(rig.pool, true, true));
    const Pool::Turn calling(rig.pool, true, false);
  }
  const Pool::Turn both(rig.pool, true, true);
}

CASE("a closed pool refuses its callers") {
  Rig<> rig(settings(4, 4, 2));
  rig.pool.close(Clock::now() + 10s);
  CHECK_THROWS(ClosedError, "this pool is closed", Pool::Turn(rig.pool, true, true));
  CHECK_THROWS(ClosedError, "this pool is closed", Pool::Turn(rig.pool, false, true));
}

CASE("a step that races with close is done or refused, never on environments that are gone") {
  for (int round = 0; round < 100; ++round) {
    Rig<> rig(settings(2, 2, 1));
    rig.reset();
    std::thread stepping([&] {
      try {
        while (true) {
          const Pool::Turn turn(rig.pool, true, true);
          rig.step();
          CHECK_EQUAL(live_envs.load(), 2);
        }
      } catch (const StateError&) {  // closed, or the other is inside
      }
    });
    bool closed = false;
    while (!closed) {
      try {
        const Pool::Turn turn(rig.pool, true, false);
        closed = rig.pool.close(Clock::now() + 10s);
      } catch (const StateError&) {
        std::this_thread::yield();
      }
    }
    stepping.join();
  }
}

CASE("a pool is of no use in a forked child, and says so") {
  Rig<> rig(settings(4, 4, 2));
  const int before = fork_count();
  const pid_t child = fork();
  if (child == 0) {
    int code = fork_count() == before + 1 && rig.pool.forked() ? 0 : 1;
    try {
      const Pool::Turn turn(rig.pool, true, true);
      code = 2;
    } catch (const StateError&) {
    }
    _exit(code);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK_EQUAL(status, 0);
  CHECK(!rig.pool.forked());
  rig.reset();
}
