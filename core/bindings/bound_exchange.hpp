#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "../exchange.hpp"

namespace raceway::python {

namespace nb = nanobind;

// A doorbell between the threads of one process.
class Bell {
 public:
  std::uint32_t now() const { return signal_.now(); }
  void ring() { signal_.raise_one(); }
  void ring_all() { signal_.raise(); }
  bool wait(std::uint32_t seen, Patience& patience, std::optional<double> timeout_s);

 private:
  Signal signal_;
};

class BoundExchange {
 public:
  static int create(std::size_t hosts) { return Shared::create(hosts); }
  BoundExchange(int fd, std::size_t host) : exchange_(std::make_shared<const Shared>(fd, host), host) {}

  std::size_t host() const { return exchange_.host(); }
  std::size_t hosts() const { return exchange_.hosts(); }

  std::uint32_t now() const { return exchange_.bell().now(); }
  void ring() { exchange_.bell().raise_one(); }
  void ring_all() { exchange_.bell().raise(); }
  bool wait(std::uint32_t seen, Patience& patience, std::optional<double> timeout_s);

  nb::object lease(std::size_t size);
  Letter write(nb::handle head, nb::handle parts, std::uint32_t readers);
  bool post(std::size_t to, Letter& letter) { return exchange_.post(to, letter); }
  nb::list receive();
  void abort() { exchange_.abort(); }
  bool aborted() const { return exchange_.aborted(); }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> sent();

 private:
  Exchange exchange_;
  std::atomic<bool> receiving_{false};
};

void bind_exchange(nb::module_& module);

}  // namespace raceway::python
