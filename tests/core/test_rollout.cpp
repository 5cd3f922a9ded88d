// Rollouts of scripted environments, whose steps tell what was done to them.
#include <cmath>
#include <random>

#include "check.hpp"
#include "rollout.hpp"
#include "scripted.hpp"

using namespace raceway;
using namespace raceway::test;

namespace {

// Three numbers in, one of a hundred actions out, as the scripted environment has it.
std::shared_ptr<Policy> policy_for_scripted(float poison = 0.0F) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0.0F, 0.3F);
  PolicyShape shape;
  std::vector<float> params;
  const auto layer = [&](std::size_t inputs, std::size_t outputs) {
    LayerShape made{params.size(), params.size() + inputs * outputs, inputs, outputs};
    for (std::size_t i = 0; i < (inputs + 1) * outputs; ++i) params.push_back(normal(random));
    return made;
  };
  shape.inputs = {{false, 3}};
  shape.actor = {layer(3, 16), layer(16, 100)};
  shape.critic = {layer(3, 16), layer(16, 1)};
  shape.nvec = {100};
  params[shape.actor[1].bias] += poison;
  auto policy = std::make_shared<Policy>(shape);
  const float mean[3] = {3.0F, 100.0F, 0.5F}, rate[3] = {0.3F, 0.01F, 2.0F};
  policy->load(params, mean, rate);
  return policy;
}

// Arrays for a rollout, filled with what no rollout writes.
struct Arrays {
  Arrays(std::size_t steps, std::size_t num_envs)
      : num_steps(steps),
        envs(num_envs),
        obs((steps + 1) * envs * 3, -7.0F),
        rewards(steps * envs, -7.0F),
        log_probs(steps * envs, -7.0F),
        values((steps + 1) * envs, -7.0F),
        final_values(steps * envs, -7.0F),
        returns(steps * envs, -7.0F),
        actions(steps * envs, -7),
        lengths(steps * envs, -7),
        terminated(steps * envs, 7),
        truncated(steps * envs, 7),
        infos(1, -7.0) {}

  RolloutCall call(std::uint64_t seed = 5, std::uint32_t first_step = 0) {
    RolloutCall result;
    result.num_steps = num_steps;
    result.seed = seed;
    result.first_step = first_step;
    RolloutArrays& arrays = result.arrays;
    arrays.obs = {obs.data()};
    arrays.actions = actions.data();
    arrays.rewards = rewards.data();
    arrays.terminated = terminated.data();
    arrays.truncated = truncated.data();
    arrays.log_probs = log_probs.data();
    arrays.values = values.data();
    arrays.final_values = final_values.data();
    arrays.episode_returns = returns.data();
    arrays.episode_lengths = lengths.data();
    arrays.info_means = infos.data();
    return result;
  }
  bool operator==(const Arrays&) const = default;
  std::size_t at(std::size_t t, std::size_t env) const { return t * envs + env; }

  std::size_t num_steps, envs;
  std::vector<float> obs, rewards, log_probs, values, final_values, returns;
  std::vector<std::int32_t> actions, lengths;
  std::vector<std::uint8_t> terminated, truncated;
  std::vector<double> infos;
};

Pool::Settings collecting(std::size_t envs, int workers) {
  return settings(envs, envs, workers, RACEWAY_SAME_STEP);
}

std::vector<Arrays> two_rounds(int workers, std::size_t group, const Values& values, std::int32_t limit) {
  Rig<> rig(collecting(19, workers), values, -1, {}, limit);
  rig.reset();
  Rollout rollout(rig.pool, policy_for_scripted());
  rollout.set_group_size(group);
  std::vector<Arrays> rounds;
  for (std::uint32_t round = 0; round < 2; ++round) {
    Arrays arrays(30, 19);
    CHECK(rollout.collect(arrays.call(5, round * 30)));
    rounds.push_back(arrays);
  }
  return rounds;
}

}  // namespace

CASE("a rollout has the same bits for any number of workers and any group, whatever the delays") {
  const Values values{integer("length", 7)};
  const Values delayed{integer("length", 7), real("delay_us", 30.0)};
  // The scripted environment draws its delay from its own stream, so delays are compared with delays.
  for (const Values& each : {values, delayed}) {
    const auto expected = two_rounds(1, 1, each, 5);
    for (const int workers : {1, 2, 4}) {
      for (const std::size_t group : {0U, 1U, 3U, 8U}) {
        const auto rounds = two_rounds(workers, group, each, 5);
        CHECK(rounds[0] == expected[0]);
        CHECK(rounds[1] == expected[1]);
      }
    }
  }
}

CASE("the same actions, taken one step at a time, give the same rows") {
  for (const std::int32_t limit : {0, 5}) {
    const Values values{integer("length", 7)};
    const auto rounds = two_rounds(2, 0, values, limit);
    Rig<> twin(settings(19, 19, 1, RACEWAY_SAME_STEP, true), values, -1, {}, limit);
    twin.reset();
    for (std::size_t round = 0; round < 2; ++round) {
      const Arrays& arrays = rounds[round];
      double info_sum = 0.0;
      for (std::size_t t = 0; t < 30; ++t) {
        for (std::size_t env = 0; env < 19; ++env) {
          for (std::size_t i = 0; i < 3; ++i) CHECK_EQUAL(arrays.obs[arrays.at(t, env) * 3 + i], twin.obs(env, i));
          twin.act(env, arrays.actions[arrays.at(t, env)]);
        }
        twin.pool.step(twin.full.data());
        for (std::size_t env = 0; env < 19; ++env) {
          const std::size_t at = arrays.at(t, env);
          CHECK_EQUAL(arrays.rewards[at], static_cast<float>(twin.rows.reward[env]));
          CHECK_EQUAL(arrays.terminated[at], twin.rows.terminated[env]);
          CHECK_EQUAL(arrays.truncated[at], twin.rows.truncated[env]);
          const bool ended = twin.rows.terminated[env] || twin.rows.truncated[env];
          CHECK_EQUAL(arrays.lengths[at], ended ? twin.rows.episode_length[env] : 0);
          CHECK_EQUAL(arrays.returns[at], ended ? static_cast<float>(twin.rows.episode_return[env]) : 0.0F);
          // The info is the step's own: how many steps the episode has had, its last one included.
          info_sum += ended ? static_cast<double>(twin.final_obs(env, 0)) : static_cast<double>(twin.obs(env, 0));
        }
      }
      for (std::size_t env = 0; env < 19; ++env) {
        for (std::size_t i = 0; i < 3; ++i) CHECK_EQUAL(arrays.obs[arrays.at(30, env) * 3 + i], twin.obs(env, i));
      }
      CHECK(std::abs(arrays.infos[0] - info_sum / (30 * 19)) < 1e-9);
    }
  }
}

CASE("values are those of the observations, and of the last one where an episode was cut off") {
  const auto policy = policy_for_scripted();
  const auto rounds = two_rounds(2, 0, {integer("length", 7)}, 5);  // cut off before it ends
  const auto ended = two_rounds(2, 0, {integer("length", 4)}, 4);   // ends in the step that would cut it off
  const auto network = policy->network();
  Pass pass(network->shape());
  const auto value = [&](const float* obs) {
    pass.encode(*network, 0, obs);
    pass.forward(*network, 1, false);
    return pass.value(0);
  };
  Rig<> twin(collecting(19, 1), {integer("length", 7)}, -1, {}, 5);
  twin.reset();
  const Arrays& arrays = rounds[0];
  int cut_off = 0;
  for (std::size_t t = 0; t <= 30; ++t) {
    for (std::size_t env = 0; env < 19; ++env) {
      CHECK_EQUAL(arrays.values[arrays.at(t, env)], value(&arrays.obs[arrays.at(t, env) * 3]));
      if (t < 30) twin.act(env, arrays.actions[arrays.at(t, env)]);
    }
    if (t == 30) break;
    twin.pool.step(twin.full.data());
    for (std::size_t env = 0; env < 19; ++env) {
      const bool cut = arrays.truncated[arrays.at(t, env)] != 0;
      const float last[3] = {twin.final_obs(env, 0), twin.final_obs(env, 1), twin.final_obs(env, 2)};
      CHECK_EQUAL(arrays.final_values[arrays.at(t, env)], cut ? value(last) : 0.0F);
      cut_off += cut;
    }
  }
  CHECK_EQUAL(cut_off, 6 * 19);
  for (std::size_t i = 0; i < ended[0].final_values.size(); ++i) {
    CHECK_EQUAL(ended[0].truncated[i], ended[0].terminated[i]);
    CHECK_EQUAL(ended[0].final_values[i], 0.0F);
  }
}

CASE("actions depend on seed, environment and step, and on nothing else") {
  Rig<> rig(collecting(4, 1));
  Rollout rollout(rig.pool, policy_for_scripted());
  const auto collected = [&](std::uint64_t seed, std::uint32_t first_step, std::uint32_t first_env) {
    for (std::uint32_t i = 0; i < 4; ++i) rig.pool.random(i) = seeded({&i, 1});
    rig.reset();
    Arrays arrays(20, 4);
    RolloutCall call = arrays.call(seed, first_step);
    call.first_env = first_env;
    CHECK(rollout.collect(call));
    return arrays;
  };
  const Arrays first = collected(5, 0, 0);
  CHECK(collected(5, 0, 0) == first);
  CHECK(collected(6, 0, 0).actions != first.actions);
  CHECK(collected(5, 20, 0).actions != first.actions);
  CHECK(collected(5, 0, 4).actions != first.actions);
}

CASE("an environment that fails is told with its step, whatever the grouping") {
  for (const std::size_t group : {1U, 3U, 8U}) {
    Rig<> rig(collecting(9, 2), {}, 4, {integer("fail_at", 6)});
    rig.reset();
    Rollout rollout(rig.pool, policy_for_scripted());
    rollout.set_group_size(group);
    Arrays arrays(30, 9);
    CHECK_THROWS(EnvError, "environment 4 of Scripted failed in step 5 of the rollout: scripted failure",
                 rollout.collect(arrays.call()));
    CHECK_THROWS(ResetNeeded, "environment 4 has", rollout.collect(arrays.call()));
    rig.reset();
    Arrays few(5, 9);
    CHECK(rollout.collect(few.call()));
  }
}

CASE("what is not finite does not reach an environment") {
  for (const float poison : {NAN, INFINITY}) {
    Rig<> rig(collecting(9, 2));
    rig.reset();
    Rollout rollout(rig.pool, policy_for_scripted(poison));
    Arrays arrays(3, 9);
    CHECK_THROWS(PolicyError, "output for environment 0 of Scripted in step 0", rollout.collect(arrays.call()));
    for (std::size_t env = 0; env < 9; ++env) CHECK_EQUAL(rig.pool.episode(env).steps, 0);
  }
}

CASE("a policy that does not fit the environment is refused") {
  Rig<> rig(collecting(2, 1)), next_step(settings(2, 2, 1));
  PolicyShape shape = policy_for_scripted()->shape();
  const auto refused = [&](const char* part, Pool& pool, const PolicyShape& each) {
    CHECK_THROWS(std::invalid_argument, part, Rollout(pool, std::make_shared<Policy>(each)));
  };
  refused("autoreset='same_step'", next_step.pool, shape);
  PolicyShape leaves = shape;
  leaves.inputs = {{false, 1}, {false, 2}};
  refused("has 1 leaves", rig.pool, leaves);
  PolicyShape discrete = shape;
  discrete.inputs = {{true, 3}};
  refused("is a box of 3 numbers", rig.pool, discrete);
  PolicyShape two = shape;
  two.nvec = {50, 50};
  two.action_size = 2;
  refused("one of 100 values", rig.pool, two);
  Arrays arrays(2, 2);
  rig.reset();
  Rollout empty(rig.pool, std::make_shared<Policy>(shape));
  CHECK_THROWS(StateError, "no weights yet", empty.collect(arrays.call()));
  Rollout unmasked(rig.pool, policy_for_scripted());
  std::vector<std::uint8_t> mask(2 * 2 * 100);
  RolloutCall call = arrays.call();
  call.arrays.action_mask = mask.data();
  CHECK_THROWS(std::invalid_argument, "gives no action_mask", unmasked.collect(call));
}

CASE("a pool that was never reset has nothing to go on from") {
  Rig<> rig(collecting(2, 1));
  Rollout rollout(rig.pool, policy_for_scripted());
  Arrays arrays(2, 2);
  CHECK_THROWS(ResetNeeded, "have not been reset", rollout.collect(arrays.call()));
}

CASE("environments that wait are all stepped at once, from the first rollout on") {
  const int workers = 16;
  Rig<> rig(collecting(16, workers), {real("delay_us", 4000.0)});
  rig.reset();
  Rollout rollout(rig.pool, policy_for_scripted());
  for (int round = 0; round < 3; ++round) {
    Arrays arrays(20, 16);
    const auto start = Clock::now();
    CHECK(rollout.collect(arrays.call()));
    const std::chrono::duration<double> took = Clock::now() - start;
    // One after the other: 16 environments, 20 steps, 2 ms on average are 0.64 s; all at once 0.04 s and a bit.
    CHECK(took.count() < 0.2);
  }
  CHECK_EQUAL(rig.pool.threads(), workers - 1);
}

CASE("closing the pool or saying no ends a rollout between two steps") {
  Rig<> rig(collecting(4, 2), {real("delay_us", 2000.0)});
  rig.reset();
  Rollout rollout(rig.pool, policy_for_scripted());
  Arrays arrays(100'000, 4);
  int asked = 0;
  CHECK(!rollout.collect(arrays.call(), [&asked] { return ++asked < 3; }));
  CHECK_EQUAL(asked, 3);
  std::thread closer([&rig] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    rig.pool.request_close();
  });
  CHECK(!rollout.collect(arrays.call()));
  closer.join();
}

CASE("weights that are loaded during a rollout are for the next one") {
  Rig<> rig(collecting(4, 2), {real("delay_us", 500.0)});
  rig.reset();
  const auto policy = policy_for_scripted();
  Rollout rollout(rig.pool, policy);
  std::thread loader([&policy] {
    const std::vector<float> zeros(policy->shape().num_params());
    for (int i = 0; i < 50; ++i) {
      policy->load(zeros, nullptr, nullptr);
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  for (int round = 0; round < 5; ++round) {
    Arrays arrays(10, 4);
    CHECK(rollout.collect(arrays.call()));
    const bool zero = arrays.values[0] == 0.0F;
    for (const float value : arrays.values) CHECK_EQUAL(value == 0.0F, zero);
  }
  loader.join();
}
