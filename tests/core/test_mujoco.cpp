// What lies below the MuJoCo tasks: workspaces on loan, faults, models that vary. Parity with Gymnasium is checked from
// Python.
#include <sys/mman.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "adapter.hpp"
#include "check.hpp"
#include "envs/mujoco/ant.hpp"
#include "envs/mujoco/humanoid.hpp"
#include "envs/mujoco/mujoco_task.hpp"
#include "envs/mujoco/reacher.hpp"

using namespace raceway;

namespace {

std::string gymnasium_model(const char* name) {
  return std::string(RACEWAY_MODELS) + "/" + name;
}

// A model in a file of its own, gone with the test.
class ModelFile {
 public:
  explicit ModelFile(const std::string& xml)
      : path_(std::filesystem::temp_directory_path() / ("raceway_test_" + std::to_string(getpid()) + ".xml")) {
    std::ofstream(path_) << xml;
  }
  ~ModelFile() { std::filesystem::remove(path_); }
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// One environment and its generator, without a pool.
template <class Env>
class Alone {
 public:
  explicit Alone(const std::string& model, std::vector<NamedRange> ranges = {})
      : path_(model), ranges_(std::move(ranges)), config(Arguments(values())), env(config) {
    const std::uint32_t seed = 5;
    storage_ = seeded({&seed, 1});
  }

  void reset() {
    Random random(storage_);
    env.reset(random, nullptr);
  }
  Step step(float scale = 1.0F) {
    Random random(storage_);
    std::vector<float> action(env.action_size());
    for (float& each : action) each = scale * static_cast<float>(random.uniform(-1.0, 1.0));
    return env.step(action.data(), random);
  }
  std::vector<double> observation() const {
    std::vector<double> row(env.obs_size());
    env.observe(row.data());
    return row;
  }

 private:
  std::vector<raceway_value> values() {
    raceway_value file{}, varied{};
    file.name = "xml_file";
    file.text = path_.c_str();
    for (const NamedRange& range : ranges_) {
      names_ += (names_.empty() ? "" : "\n") + range.name;
      reals_.insert(reals_.end(), {range.low, range.high});
    }
    varied.name = "randomize";
    varied.text = names_.c_str();
    varied.reals = reals_.data();
    varied.num_reals = reals_.size();
    given_ = {file, varied};
    return given_;
  }

  std::string path_, names_;
  std::vector<NamedRange> ranges_;
  std::vector<double> reals_;
  std::vector<raceway_value> given_;
  raceway_random storage_{};

 public:
  typename Env::Config config;
  Env env;
};

const std::vector<NamedRange> kEverything{{"mass", 0.5, 2.0},         {"friction", 0.5, 1.5},  {"gain", 0.8, 1.2},
                                          {"damping", 0.5, 2.0},      {"stiffness", 0.5, 2.0}, {"armature", 0.5, 2.0},
                                          {"frictionloss", 0.0, 1.0}, {"gravity", 0.9, 1.1}};

// While it lives, a write to the model's arrays ends the process.
class ReadOnly {
 public:
  explicit ReadOnly(const mjModel& model) {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    begin_ = (reinterpret_cast<std::uintptr_t>(model.buffer) + page - 1) / page * page;
    size_ = (reinterpret_cast<std::uintptr_t>(model.buffer) + static_cast<std::size_t>(model.nbuffer)) / page * page -
            begin_;
    CHECK_EQUAL(mprotect(reinterpret_cast<void*>(begin_), size_, PROT_READ), 0);
  }
  ~ReadOnly() { mprotect(reinterpret_cast<void*>(begin_), size_, PROT_READ | PROT_WRITE); }
  ReadOnly(const ReadOnly&) = delete;
  ReadOnly& operator=(const ReadOnly&) = delete;

 private:
  std::uintptr_t begin_;
  std::size_t size_;
};

}  // namespace

CASE("a workspace is lent to one borrower at a time and used again") {
  const mujoco::Model model = mujoco::load(gymnasium_model("reacher.xml"));
  mujoco::Simulators simulators(*model, -1);
  const mjData* first = nullptr;
  {
    const mujoco::Simulators::Loan one(simulators);
    const mujoco::Simulators::Loan other(simulators);
    CHECK(&*one != &*other);
    first = &*one;
  }
  {
    const mujoco::Simulators::Loan again(simulators), another(simulators);
    CHECK(&*again == first || &*another == first);
  }
}

CASE("a workspace in which something went wrong is not used again") {
  const mujoco::Model model = mujoco::load(gymnasium_model("reacher.xml"));
  mujoco::Simulators simulators(*model, -1);
  {
    mujoco::Simulators::Loan loan(simulators);
    loan->time = 17.0;
    loan.discard();
  }
  CHECK_EQUAL(mujoco::Simulators::Loan(simulators)->time, 0.0);
  try {
    const mujoco::Simulators::Loan loan(simulators);
    loan->time = 18.0;
    throw std::runtime_error("left");
  } catch (const std::runtime_error&) {
  }
  CHECK_EQUAL(mujoco::Simulators::Loan(simulators)->time, 0.0);
}

CASE("more threads than places borrow, and none waits or shares") {
  const mujoco::Model model = mujoco::load(gymnasium_model("reacher.xml"));
  mujoco::Simulators simulators(*model, -1);
  std::atomic<int> clashes{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 80; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 20; ++round) {
        const mujoco::Simulators::Loan loan(simulators);
        loan->time = i;
        std::this_thread::yield();
        if (loan->time != i) clashes.fetch_add(1);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK_EQUAL(clashes.load(), 0);
}

CASE("a stack that is too small ends the episode, and the next one goes on") {
  // Enough for an ant in the air and too little for one on the ground.
  std::ifstream original(gymnasium_model("ant.xml"));
  std::string xml((std::istreambuf_iterator<char>(original)), {});
  const std::size_t end = xml.rfind("</mujoco>");
  xml.insert(end, "<size memory=\"12K\"/>");
  const ModelFile file(xml);
  Alone<Ant> ant(file.path());
  int faults = 0, sound = 0;
  for (int episode = 0; episode < 3; ++episode) {
    try {
      ant.reset();
    } catch (const mujoco::Error&) {
      continue;
    }
    for (int i = 0; i < 50; ++i) {
      const std::vector<double> before = ant.observation();
      const Step step = ant.step();
      if (step.fault == 0) {
        ++sound;
        continue;
      }
      ++faults;
      CHECK(step.terminated);
      CHECK_EQUAL(step.reward, 0.0);
      CHECK_EQUAL(int{step.fault}, int{mujoco::kStopped});
      CHECK_EQUAL(ant.observation(), before);
      break;
    }
  }
  CHECK(faults > 0);
}

CASE("a state that is not finite is a fault and touches no other environment") {
  Alone<Ant> sick(gymnasium_model("ant.xml"));
  Ant healthy(sick.config), twin(sick.config);
  raceway_random a = seeded({}), b = seeded({});
  Random random_a(a), random_b(b);
  healthy.reset(random_a, nullptr);
  twin.reset(random_b, nullptr);
  sick.reset();
  std::vector<char> state;
  {
    Describe describe;
    sick.env.archive(describe);
    std::size_t bytes = 0;
    for (const Column& column : describe.columns) bytes += bytes_of(column.view());
    state.resize(bytes);
  }
  const std::vector<float> action(8, 0.3F);
  for (const double absurd : {std::nan(""), 1e300, -std::numeric_limits<double>::infinity()}) {
    Save save(state.data());
    sick.env.archive(save);
    std::memcpy(state.data() + 5 * sizeof(double), &absurd, sizeof absurd);  // a position
    Load load(state.data());
    sick.env.archive(load);
    const Step step = sick.step();
    CHECK(step.fault != 0 && step.terminated && step.reward == 0.0);
    CHECK_EQUAL(healthy.step(action.data(), random_a).reward, twin.step(action.data(), random_b).reward);
    sick.reset();
    CHECK_EQUAL(int{sick.step().fault}, 0);
  }
}

CASE("a varied model writes nothing to the shared one") {
  for (const char* name : {"ant.xml", "humanoid.xml"}) {
    Alone<MujocoTask> varied(gymnasium_model(name), kEverything);
    const ReadOnly guard(*varied.config.world->model);
    for (int episode = 0; episode < 5; ++episode) {
      varied.reset();
      for (int i = 0; i < 20; ++i) varied.step();
      varied.env.restored();
    }
  }
}

CASE("a varied model steps as a whole copy with the same numbers does") {
  const mujoco::Model model = mujoco::load(gymnasium_model("humanoid.xml"));
  const mujoco::LeanModel lean(*model);
  const mujoco::Variation variation(*model, kEverything);
  mujoco::VariedModel varied(lean, variation);
  const mujoco::Data data(mj_makeData(model.get()));
  std::vector<double> factors = variation.lowest();
  const std::uint32_t seed = 3;
  raceway_random storage = seeded({&seed, 1});
  Random random(storage);
  for (int round = 0; round < 3; ++round) {
    variation.draw(random, factors);
    CHECK_EQUAL(variation.flaw(factors), "");
    varied.apply(factors, *data);
    const mujoco::Model copy(mj_copyModel(nullptr, model.get()));
    const mjModel& own = varied.model();
    std::memcpy(copy->body_mass, own.body_mass, sizeof(double) * static_cast<std::size_t>(model->nbody));
    std::memcpy(copy->body_inertia, own.body_inertia, 3 * sizeof(double) * static_cast<std::size_t>(model->nbody));
    std::memcpy(copy->geom_friction, own.geom_friction, 3 * sizeof(double) * static_cast<std::size_t>(model->ngeom));
    std::memcpy(copy->actuator_gainprm, own.actuator_gainprm,
                mjNGAIN * sizeof(double) * static_cast<std::size_t>(model->nactuator));
    std::memcpy(copy->actuator_biasprm, own.actuator_biasprm,
                mjNBIAS * sizeof(double) * static_cast<std::size_t>(model->nactuator));
    std::memcpy(copy->dof_damping, own.dof_damping, sizeof(double) * static_cast<std::size_t>(model->nv));
    std::memcpy(copy->dof_armature, own.dof_armature, sizeof(double) * static_cast<std::size_t>(model->nv));
    std::memcpy(copy->dof_frictionloss, own.dof_frictionloss, sizeof(double) * static_cast<std::size_t>(model->nv));
    std::memcpy(copy->jnt_stiffness, own.jnt_stiffness, sizeof(double) * static_cast<std::size_t>(model->njnt));
    std::memcpy(copy->opt.gravity, own.opt.gravity, sizeof own.opt.gravity);
    const mujoco::Data other(mj_makeData(copy.get()));
    mj_setConst(copy.get(), other.get());
    mj_resetData(&own, data.get());
    mj_resetData(copy.get(), other.get());
    for (int step = 0; step < 200; ++step) {
      for (int i = 0; i < model->nu; ++i) data->ctrl[i] = other->ctrl[i] = random.uniform(-0.4, 0.4);
      mj_step(&own, data.get());
      mj_step(copy.get(), other.get());
      CHECK_EQUAL(std::memcmp(data->qpos, other->qpos, sizeof(double) * static_cast<std::size_t>(model->nq)), 0);
      CHECK_EQUAL(std::memcmp(data->qvel, other->qvel, sizeof(double) * static_cast<std::size_t>(model->nv)), 0);
    }
    CHECK(std::memcmp(own.body_mass, model->body_mass, sizeof(double) * static_cast<std::size_t>(model->nbody)) != 0);
  }
}

CASE("a named part goes before the whole, a number is drawn from nothing, and factors out of range are refused") {
  const mujoco::Model model = mujoco::load(gymnasium_model("ant.xml"));
  const mujoco::Variation variation(*model, {{"mass:torso", 1.0, 1.0}, {"mass", 0.5, 2.0}, {"gravity", 0.7, 0.7}});
  CHECK_EQUAL(variation.size(), static_cast<std::size_t>(model->nbody));  // all bodies but the world, and gravity
  std::vector<double> factors = variation.lowest();
  raceway_random storage = seeded({});
  const raceway_random before = storage;
  Random random(storage);
  const mujoco::Variation fixed(*model, {{"mass", 1.5, 1.5}});
  std::vector<double> constant = fixed.lowest();
  fixed.draw(random, constant);
  CHECK_EQUAL(std::memcmp(&storage, &before, sizeof storage), 0);
  variation.draw(random, factors);
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const auto& part = variation.parts()[i];
    CHECK(part.low <= factors[i] && factors[i] <= part.high);
    if (part.field == mujoco::Variation::Field::kMass && part.index == 1) CHECK_EQUAL(factors[i], 1.0);
  }
  factors[3] = 5.0;
  CHECK(!variation.flaw(factors).empty());
  factors[3] = std::nan("");
  CHECK(!variation.flaw(factors).empty());
  using Ranges = std::vector<NamedRange>;
  CHECK_THROWS(std::invalid_argument, "no 'mas'", mujoco::Variation(*model, Ranges{{"mas", 1, 1}}));
  CHECK_THROWS(std::invalid_argument, "no body 'tors'", mujoco::Variation(*model, Ranges{{"mass:tors", 1, 1}}));
  CHECK_THROWS(std::invalid_argument, "has no parts", mujoco::Variation(*model, Ranges{{"gravity:x", 1, 1}}));
  CHECK_THROWS(std::invalid_argument, "above 0", mujoco::Variation(*model, Ranges{{"mass", 0, 1}}));
  CHECK_THROWS(std::invalid_argument, "0 or more", mujoco::Variation(*model, Ranges{{"friction", -1, 1}}));
}

CASE("a varied model whose pairs are listed steps as a whole copy with the same numbers does") {
  for (const char* name : {"ant.xml", "hopper.xml", "walker2d_v5.xml"}) {
    const mujoco::Model model = mujoco::load(gymnasium_model(name));
    const mujoco::LeanModel lean(*model);
    CHECK(lean.lists_pairs());
    const mujoco::Variation variation(*model, {{"friction", 0.0, 2.0}, {"mass", 0.5, 2.0}});
    mujoco::VariedModel varied(lean, variation);
    const mujoco::Data data(mj_makeData(&lean.model()));
    std::vector<double> factors = variation.lowest();
    const std::uint32_t seed = 3;
    raceway_random storage = seeded({&seed, 1});
    Random random(storage);
    variation.draw(random, factors);
    varied.apply(factors, *data);
    const mujoco::Model copy(mj_copyModel(nullptr, model.get()));
    const auto bodies = static_cast<std::size_t>(model->nbody), geoms = static_cast<std::size_t>(model->ngeom);
    std::memcpy(copy->body_mass, varied.model().body_mass, sizeof(double) * bodies);
    std::memcpy(copy->body_inertia, varied.model().body_inertia, 3 * sizeof(double) * bodies);
    std::memcpy(copy->geom_friction, varied.model().geom_friction, 3 * sizeof(double) * geoms);
    const mujoco::Data other(mj_makeData(copy.get()));
    mj_setConst(copy.get(), other.get());
    mj_resetData(&varied.model(), data.get());
    mj_resetData(copy.get(), other.get());
    int contacts = 0;
    for (int step = 0; step < 400; ++step) {
      for (int i = 0; i < model->nu; ++i) data->ctrl[i] = other->ctrl[i] = random.uniform(-1.0, 1.0);
      mj_step(&varied.model(), data.get());
      mj_step(copy.get(), other.get());
      contacts += data->ncon;
      CHECK_EQUAL(std::memcmp(data->qvel, other->qvel, sizeof(double) * static_cast<std::size_t>(model->nv)), 0);
    }
    CHECK(contacts > 0);
  }
}

CASE("pairs are listed where MuJoCo would find them, and nowhere else") {
  const auto lists = [](const char* name) {
    const mujoco::Model model = mujoco::load(gymnasium_model(name));
    const mujoco::LeanModel lean(*model);
    return lean.lists_pairs() ? static_cast<int>(lean.model().npair) : 0;
  };
  CHECK_EQUAL(lists("half_cheetah.xml"), 8);
  CHECK_EQUAL(lists("ant.xml"), 13);
  CHECK_EQUAL(lists("hopper.xml"), 7);
  CHECK_EQUAL(lists("humanoid.xml"), 0);  // bodies of several geoms, which meet each other
  CHECK_EQUAL(lists("reacher.xml"), 0);   // nothing to list
}

CASE("work that is spared changes no bit") {
  for (const char* name :
       {"ant.xml", "half_cheetah.xml", "hopper.xml", "walker2d_v5.xml", "humanoid.xml", "humanoidstandup.xml",
        "swimmer.xml", "reacher.xml", "pusher_v5.xml", "inverted_pendulum.xml", "inverted_double_pendulum.xml"}) {
    const mujoco::Guard guard;
    char error[100];
    const mujoco::Model whole(mj_loadXML(gymnasium_model(name).c_str(), nullptr, error, sizeof error));
    const mujoco::LeanModel lean(*whole);
    const mjModel* spared = &lean.model();
    const mujoco::Data a(mj_makeData(whole.get())), b(mj_makeData(spared));
    const std::uint32_t seed = 8;
    raceway_random storage = seeded({&seed, 1});
    Random random(storage);
    const auto size = sizeof(double) * static_cast<std::size_t>(mj_stateSize(whole.get(), mjSTATE_INTEGRATION));
    std::vector<char> left(size), right(size);
    for (int step = 0; step < 2000; ++step) {
      if (step % 250 == 0) {
        mj_resetData(whole.get(), a.get());
        mj_resetData(spared, b.get());
        for (int i = 0; i < whole->nq; ++i) a->qpos[i] = b->qpos[i] += random.uniform(-0.1, 0.1);
      }
      for (int i = 0; i < whole->nu; ++i) a->ctrl[i] = b->ctrl[i] = random.uniform(-1.0, 1.0);
      mj_step(whole.get(), a.get());
      mj_step(spared, b.get());
      mj_getState(whole.get(), a.get(), reinterpret_cast<double*>(left.data()), mjSTATE_INTEGRATION);
      mj_getState(spared, b.get(), reinterpret_cast<double*>(right.data()), mjSTATE_INTEGRATION);
      CHECK(left == right);
    }
  }
}

CASE("a model that cannot be used is refused with the reason") {
  CHECK_THROWS(std::invalid_argument, "is no model", mujoco::load("/nowhere.xml"));
  const ModelFile broken("<mujoco><worldbody><body></worldbody></mujoco>");
  CHECK_THROWS(std::invalid_argument, "XML", mujoco::load(broken.path()));
  const ModelFile asleep("<mujoco><option><flag sleep=\"enable\"/></option><worldbody/></mujoco>");
  CHECK_THROWS(std::invalid_argument, "sleep", mujoco::load(asleep.path()));
  CHECK_THROWS(std::invalid_argument, "does not fit this task", Alone<Humanoid>(gymnasium_model("reacher.xml")));
  CHECK_THROWS(std::invalid_argument, "no body 'fingertip'", Alone<Reacher>(gymnasium_model("ant.xml")));
}
