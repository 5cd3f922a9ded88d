#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "../exchange.hpp"
#include "../tally.hpp"

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
  BoundExchange(int fd, std::size_t host, bool writes_all)
      : exchange_(std::make_shared<const Shared>(fd, writes_all ? Shared::kAnyHost : host), host) {}

  std::size_t host() const { return exchange_.host(); }
  std::size_t hosts() const { return exchange_.hosts(); }

  std::uint32_t now() const { return exchange_.bell().now(); }
  void ring() { exchange_.bell().raise_one(); }
  void ring_all() { exchange_.bell().raise(); }
  void ring_host(std::size_t host) { exchange_.ring(host); }
  bool wait(std::uint32_t seen, Patience& patience, std::optional<double> timeout_s);

  std::optional<std::uint64_t> place_of(nb::handle array);
  nb::object window(std::size_t host, std::uint64_t place, std::size_t size);

  nb::object lease(std::size_t size);
  Letter write(nb::handle head, nb::handle parts, std::uint32_t readers);
  bool post(std::size_t to, Letter& letter) { return exchange_.post(to, letter); }
  nb::list receive();
  void abort() { exchange_.abort(); }
  bool aborted() const { return exchange_.aborted(); }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> sent();
  const Exchange& exchange() const { return exchange_; }

 private:
  Exchange exchange_;
  std::atomic<bool> receiving_{false};
};

inline Tally& tally_at(const Exchange& exchange, std::size_t host, std::uint64_t place) {
  return *reinterpret_cast<Tally*>(exchange.window(host, place, sizeof(Tally)).data());
}

// A tally that lies in what a host has leased, and whose bell it rings.
class BoundTally {
 public:
  BoundTally(BoundExchange& exchange, std::size_t host, std::uint64_t place)
      : exchange_(exchange.exchange()), host_(host), tally_(tally_at(exchange_, host, place)) {}

  void add(std::int64_t done) {
    if (tally_.add(done)) exchange_.ring(host_);
  }
  void want(std::int64_t wanted) { tally_.want(wanted); }
  void take(std::int64_t done) { tally_.take(done); }
  void clear() { tally_.clear(); }
  std::int64_t done() const { return tally_.done(); }
  std::int64_t issued() const { return tally_.issued(); }

 private:
  const Exchange& exchange_;
  const std::size_t host_;
  Tally& tally_;
};

void bind_exchange(nb::module_& module);

}  // namespace raceway::python
