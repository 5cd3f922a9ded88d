#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "describe.hpp"
#include "interpreter.hpp"

namespace raceway::python {

class BoundPool {
 public:
  // `which[i]` is the number of environment i's configuration.
  BoundPool(const Configurations& configurations, const std::vector<std::size_t>& which,
            const std::vector<std::int32_t>& limits, const nb::dict& settings);
  ~BoundPool();

  void seed(const nb::list& seeds);
  nb::tuple reset(nb::handle mask, const std::optional<std::vector<double>>& options, const nb::list& seeds);
  nb::tuple step(nb::handle actions);
  nb::object observe();
  void async_reset();
  void send(nb::handle actions, nb::handle env_ids);
  nb::tuple recv(std::optional<double> timeout_s);
  nb::tuple save();
  void load(nb::handle rows, nb::handle random, nb::handle counts, nb::handle sums);
  nb::object faults();
  nb::object pictures();  // [N, height, width, 3]
  void close();

  // Before every call that touches environments: waits for what an interrupted one has left behind.
  void recover();
  // Keeps what threads of an interrupted call still use, until they have returned. `native` must not lead back to this
  // object, or neither would ever go.
  void hold(nb::handle used, std::shared_ptr<void> native = nullptr) {
    held_.push_back({nb::borrow(used), std::move(native)});
  }

  Pool& native() { return *pool_; }
  const std::string& task() const { return task_; }
  int workers() const { return pool_->workers(); }
  int threads() const { return pool_->threads(); }
  std::size_t in_flight() const { return pool_->in_flight(); }

 private:
  struct Rows {
    Rows(const BoundPool& pool, bool some);
    std::byte* data;
    nb::object owner;
  };

  void run_in_background(std::function<void()> work, nb::handle used);
  void leave_behind();
  template <class Begin>
  nb::tuple filled(Begin begin);
  nb::tuple wrapped(const Rows& memory, bool some) const;
  nb::tuple completed(nb::tuple result, const Rows& memory, bool some) const;
  bool received(std::byte* rows, Clock::time_point deadline, bool others_may_send);

  std::string task_;
  std::unique_ptr<Pool> pool_;
  struct Keys {
    nb::object values, marks;
  };
  std::vector<Keys> info_keys_;  // "name" and "_name"
  std::shared_ptr<Slab> full_slab_, batch_slab_;
  // copy=False: one block of each, written again by every call.
  std::byte *kept_full_ = nullptr, *kept_batch_ = nullptr;
  nb::object kept_full_owner_, kept_batch_owner_;
  struct Held {
    nb::object object;
    std::shared_ptr<void> native;
  };
  std::vector<Held> held_;
  bool stuck_ = false;
  // Memory that send() uses again.
  std::vector<std::size_t> envs_, sorted_envs_;
  std::vector<char> actions_aside_;
};

}  // namespace raceway::python
