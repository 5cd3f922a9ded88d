// Between Python objects and plain memory, by NumPy's own C interface: an array costs a tenth of a microsecond.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "../pool.hpp"

namespace raceway::python {

namespace nb = nanobind;

void import_numpy();

// A block on loan whose memory becomes arrays. It returns to its slab when the last of them is gone.
class Lease {
 public:
  explicit Lease(Slab& slab) : block_(slab.take()) {}
  ~Lease() {
    if (block_) Slab::give_back(block_);
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  std::byte* data() const { return block_->memory.data(); }
  nb::object into_owner();  // what the arrays keep alive

 private:
  Block* block_;
};

// An array over `data`, `rows` first. `stride` is the distance of two rows in bytes; 0: the column's own size.
nb::object array_over(const void* data, const raceway_column& column, std::size_t rows, std::size_t stride,
                      nb::handle owner);
nb::object array_over(const double* data, std::size_t rows, nb::handle owner);
nb::object array_over(const std::int64_t* data, std::size_t rows, nb::handle owner);
nb::object flags_over(const std::uint8_t* data, std::size_t rows, nb::handle owner);
nb::object bytes_over(const void* data, std::size_t size, nb::handle owner, bool writable);

// The observations of a batch as Gymnasium batches them: an array, or a tuple or dict of them.
nb::object observations(const void* data, const raceway_layout& layout, std::size_t rows, nb::handle owner);

// Reads one action per entry of `envs` (empty: one per environment, in order) into the pool's action rows. If any is
// refused, the rows may hold anything; they are written again before they are used.
// `aside` is memory that the next call uses again.
void read_actions(nb::handle actions, Pool& pool, const std::string& task, std::span<const std::size_t> envs,
                  std::vector<char>& aside);

// Environment numbers, in the order given.
void read_env_ids(nb::handle ids, std::size_t num_envs, std::vector<std::size_t>& envs);

// A fresh array of bytes or numbers, C-contiguous, shape [rows, columns] ([rows] if columns is 0).
nb::object new_array(std::int32_t dtype, std::size_t rows, std::size_t columns, void** data);
// The memory of such an array given from Python, checked.
const void* memory_of(nb::handle array, std::int32_t dtype, std::size_t rows, std::size_t columns, const char* name);
// The memory of an array of any number of axes that is to be read, or written.
void* memory_of(nb::handle array, std::int32_t dtype, const std::vector<std::size_t>& shape, const std::string& name,
                bool writable);

}  // namespace raceway::python
