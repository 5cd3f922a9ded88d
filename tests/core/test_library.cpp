#include "adapter.hpp"
#include "check.hpp"
#include "library.hpp"
#include "pool.hpp"
#include "table_loop.hpp"

namespace raceway {
namespace {

// As little as an environment can have: no name, arguments or options. It counts, and shows how far in its picture.
template <std::size_t ObsSize, class ActionType = std::int64_t>
struct Counter {
  using Scalar = double;
  using Action = ActionType;
  static constexpr std::size_t kObsSize = ObsSize, kActionSize = 1;
  static constexpr int kPictureWidth = 4, kPictureHeight = 2;

  static Spaces spaces() { return {{box<double>({0}, {100})}, discrete(3)}; }
  void reset(Random&) { count_ = 0.0; }
  Step step(const Action* action, Random&) {
    if (*action == 2) throw std::runtime_error("two is too much");
    count_ += 1.0;
    return {count_, count_ >= 5.0};
  }
  void observe(double* row) const { *row = count_; }
  void draw(Picture& picture) const { picture.rectangle(0, 0, count_, 1, {1, 2, 3}); }
  template <class Archive>
  void archive(Archive& archive) {
    archive("count", count_);
  }

 private:
  double count_ = 0.0;
};

std::int64_t red(const std::vector<std::uint8_t>& pixels, std::size_t pixel) {
  return pixels[3 * pixel];
}

CASE("an environment without name, arguments and options runs in a pool, and is drawn") {
  const raceway_table& table = *Adapter<Counter<1>>::table();
  CHECK_EQUAL(table.num_parameters + table.num_options, 0U);
  Pool pool(table, std::vector<Configuration>(3, configure(table, {})), {0, 0, 0}, {3, 3, 1});
  Memory rows(pool.full_rows().bytes());
  pool.reset(rows.data(), nullptr, nullptr);
  std::fill_n(static_cast<std::int64_t*>(pool.actions()), 3, 0);
  for (int i = 0; i < 3; ++i) pool.step(rows.data());
  CHECK_EQUAL(static_cast<double*>(pool.full_rows().bind(rows.data()).obs)[2], 3.0);
  std::vector<std::uint8_t> pixels(4 * 2 * 3);
  pool.draw(2, pixels.data());
  CHECK_EQUAL(red(pixels, 2), 1);
  CHECK_EQUAL(red(pixels, 3), 0);
  CHECK_EQUAL(red(pixels, 4), 0);
}

CASE("sizes and types that do not fit the spaces are refused") {
  CHECK_THROWS(std::invalid_argument, "kObsSize is 2, but spaces() says that an observation has 1",
               configure(*Adapter<Counter<2>>::table(), {}));
  using Narrow = Counter<1, std::int32_t>;
  CHECK_THROWS(std::invalid_argument, "Action is another type", configure(*Adapter<Narrow>::table(), {}));
}

CASE("a loop over a table runs every step, and tells what failed") {
  const raceway_table& table = *Adapter<Counter<1>>::table();
  std::vector<std::int64_t> actions(7 * 100, 1);
  for (const int threads : {1, 3, 7}) {
    const BareRun run{7, 100, threads, 0, 0, actions.data()};
    CHECK(table_loop(table, configure(table, {}).get(), run) > 0.0);
  }
  actions[350] = 2;
  const BareRun run{7, 100, 2, 0, 0, actions.data()};
  CHECK_THROWS(std::invalid_argument, "two is too much", table_loop(table, configure(table, {}).get(), run));
}

CASE("a task that takes another's place leaves it where it is") {
  const raceway_table& table = *Adapter<Counter<1>>::table();
  add_task({"Counter-v0", &table, 10, {}});
  const Task* before = added_tasks().at(0).get();
  add_task({"Another-v0", &table, 20, {}});
  add_task({"Counter-v0", &table, 30, {}});
  CHECK_EQUAL(before->max_episode_steps, 10);
  CHECK_EQUAL(added_tasks().size(), 2U);
  CHECK_EQUAL(std::string(added_tasks().at(0)->id), std::string("Another-v0"));
  CHECK_EQUAL(added_tasks().at(1)->max_episode_steps, 30);
}

CASE("what is no library is refused") {
  CHECK_THROWS(std::invalid_argument, "is refused", open_library("/nonexistent/library.so"));
}

CASE("what is drawn outside of a picture is not drawn") {
  std::vector<std::uint8_t> pixels(4 * 4 * 3 + 3, 0);
  Picture picture(pixels.data(), 4, 4);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  picture.dot(-1, 0, {9, 9, 9});
  picture.dot(0, 4, {9, 9, 9});
  picture.disc(-100, -100, 3, {9, 9, 9});
  picture.line(nan, nan, nan, nan, nan, {9, 9, 9});
  picture.rectangle(5, 5, 1e300, 1e300, {9, 9, 9});
  for (const std::uint8_t byte : pixels) CHECK_EQUAL(static_cast<int>(byte), 0);
  picture.disc(2, 2, 1e9, {7, 7, 7});
  CHECK_EQUAL(red(pixels, 15), 7);
  CHECK_EQUAL(red(pixels, 16), 0);
  picture.line(0, 2, 4, 2, 2, {5, 5, 5});
  CHECK_EQUAL(red(pixels, 5), 5);
  CHECK_EQUAL(red(pixels, 0), 7);
}

}  // namespace
}  // namespace raceway
