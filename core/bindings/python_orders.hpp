// A step of all environments of a pool whose workers are other processes, as one call: from the actions to the last
// worker's answer without the interpreter, which may take longer to get its lock and CPU back than a cheap step takes.
#pragma once

#include <nanobind/nanobind.h>

#include "bound_exchange.hpp"

namespace raceway::python {

class Orders {
 public:
  // Arrays of the board: `actions` (None: they do not lie there as one array), `places` (of the rows to write and of
  // those before), `done` (per worker, the last order that it has carried out). `wanted`: environments in all.
  Orders(BoundExchange& exchange, std::uint64_t tally, nb::object actions, nb::object places, nb::object done,
         std::int64_t wanted);

  // Whether these actions can be written down as they are.
  bool takes(nb::handle actions) const;

  // Gives the order of this number, and waits until it is carried out. `actions`: such as it takes, or None if they are
  // written down already. Returns None if not all workers have done so within the timeout; else whether one of them
  // has said something.
  nb::object step(nb::handle actions, std::int64_t number, std::int64_t place, std::int64_t before, Patience& patience,
                  double timeout_s);

 private:
  bool wait(Patience& patience, Clock::time_point deadline);
  bool all_did(std::int64_t number) const;

  const nb::object kept_[4];
  const Exchange& exchange_;
  Tally& tally_;
  const std::int64_t wanted_;
  PyObject* actions_ = nullptr;
  std::int64_t* places_;
  const std::byte* done_;
  std::ptrdiff_t stride_;
  std::size_t workers_;
};

void bind_python_orders(nb::module_& module);

}  // namespace raceway::python
