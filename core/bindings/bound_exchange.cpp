// The exchange as Python sees it: buffers in, read-only arrays out. What it does is in core/exchange.
#include "bound_exchange.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "interpreter.hpp"

namespace raceway::python {
namespace {

// Copying or preparing more than this is worth leaving the interpreter to other threads.
constexpr std::size_t kLarge = 64 << 10;

constexpr auto kSlice = std::chrono::milliseconds(50);

bool wait_for(Signal& signal, std::uint32_t seen, Patience& patience, std::optional<double> timeout_s) {
  if (signal.now() != seen) return true;
  const auto end = timeout_s ? Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                  std::chrono::duration<double>(std::min(*timeout_s, 1e8)))
                             : Clock::time_point::max();
  const bool sliced = in_main_thread();  // which hears signals, and has to look for them
  const auto deadline = [&] { return sliced ? std::min(end, Clock::now() + kSlice) : end; };
  bool changed = false;
  {
    const Unlocked unlocked;
    changed = signal.wait(seen, patience, deadline());
  }
  while (!changed && Clock::now() < end) {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    const Unlocked unlocked;
    changed = signal.sleep_until(seen, deadline());
  }
  return changed;
}

// The memory of Python objects, for as long as this lives. Arrays in Fortran's order are taken as they lie in memory.
class Views {
 public:
  Views() = default;
  ~Views() {
    for (Py_buffer& view : views_) PyBuffer_Release(&view);
  }
  Views(const Views&) = delete;
  Views& operator=(const Views&) = delete;

  void reserve(std::size_t count) { views_.reserve(count); }

  Bytes add(PyObject* object) {
    Py_buffer view{};
    if (PyObject_GetBuffer(object, &view, PyBUF_ANY_CONTIGUOUS) != 0) throw nb::python_error();
    views_.push_back(view);
    return {static_cast<const std::byte*>(view.buf), static_cast<std::size_t>(view.len)};
  }

 private:
  std::vector<Py_buffer> views_;
};

nb::object bytes_of(Bytes bytes) {
  PyObject* made =
      PyBytes_FromStringAndSize(reinterpret_cast<const char*>(bytes.data()), static_cast<Py_ssize_t>(bytes.size()));
  if (!made) throw nb::python_error();
  return nb::steal(made);
}

// What arrays over a slot keep alive. The last one to go gives the slot back, in whatever thread that is.
nb::object owner_of(Hold hold) {
  auto kept = std::make_unique<Hold>(std::move(hold));
  PyObject* owner = PyCapsule_New(kept.get(), nullptr, [](PyObject* capsule) {
    delete static_cast<Hold*>(PyCapsule_GetPointer(capsule, nullptr));
  });
  if (!owner) throw nb::python_error();
  static_cast<void>(kept.release());
  return nb::steal(owner);
}

// A message as a tuple of its head and its parts. Through the ring, all parts are copied out as one.
nb::object unpacked(Arrival& arrival) {
  const bool in_ring = !arrival.hold;
  nb::object head = bytes_of(arrival.head);
  nb::list parts;
  if (!arrival.parts.empty()) {
    const std::byte* begin = arrival.body.data();
    nb::object owner;
    if (in_ring) {
      owner = bytes_of(arrival.body);
      begin = reinterpret_cast<const std::byte*>(PyBytes_AS_STRING(owner.ptr()));
    } else {
      owner = owner_of(std::move(arrival.hold));
    }
    for (Arrival::Part& part : arrival.parts) {
      if (part.hold) {
        parts.append(bytes_over(part.bytes.data(), part.bytes.size(), owner_of(std::move(part.hold)), false));
      } else {
        const std::byte* data = begin + (part.bytes.data() - arrival.body.data());
        parts.append(bytes_over(data, part.bytes.size(), owner, false));
      }
    }
  }
  return nb::make_tuple(head, parts);
}

}  // namespace

bool Bell::wait(std::uint32_t seen, Patience& patience, std::optional<double> timeout_s) {
  return wait_for(signal_, seen, patience, timeout_s);
}

bool BoundExchange::wait(std::uint32_t seen, Patience& patience, std::optional<double> timeout_s) {
  return wait_for(exchange_.bell(), seen, patience, timeout_s);
}

std::optional<std::uint64_t> BoundExchange::place_of(nb::handle array) {
  Views views;
  return exchange_.place_of(views.add(array.ptr()));
}

// The array keeps the exchange, and so the mapping, not the memory itself: that is up to who leased it.
nb::object BoundExchange::window(std::size_t host, std::uint64_t place, std::size_t size) {
  return bytes_over(exchange_.window(host, place, size).data(), size, nb::find(*this), true);
}

nb::object BoundExchange::lease(std::size_t size) {
  Hold hold;
  {
    std::optional<Unlocked> unlocked;
    if (size > kLarge) unlocked.emplace();
    hold = exchange_.lease(size);
  }
  std::byte* data = hold.data();
  return bytes_over(data, size, owner_of(std::move(hold)), true);
}

Letter BoundExchange::write(nb::handle head, nb::handle parts, std::uint32_t readers) {
  Views views;
  const nb::object sequence = nb::steal(PySequence_Fast(parts.ptr(), "parts must be a sequence of buffers"));
  if (!sequence) throw nb::python_error();
  const auto count = static_cast<std::size_t>(PySequence_Fast_GET_SIZE(sequence.ptr()));
  views.reserve(count + 1);
  const Bytes head_bytes = views.add(head.ptr());
  std::vector<Bytes> part_bytes(count);
  std::size_t size = head_bytes.size();
  for (std::size_t i = 0; i < count; ++i) {
    part_bytes[i] = views.add(PySequence_Fast_GET_ITEM(sequence.ptr(), static_cast<Py_ssize_t>(i)));
    size += part_bytes[i].size();
  }
  if (size <= kLarge) return exchange_.write(head_bytes, part_bytes, readers);
  const Unlocked unlocked;
  return exchange_.write(head_bytes, part_bytes, readers);
}

nb::list BoundExchange::receive() {
  if (receiving_.exchange(true)) throw std::runtime_error("another thread is receiving: only one may at a time.");
  const std::unique_ptr<std::atomic<bool>, void (*)(std::atomic<bool>*)> done(
      &receiving_, [](std::atomic<bool>* flag) { flag->store(false); });
  nb::list messages;
  exchange_.receive([&](Arrival& arrival) { messages.append(unpacked(arrival)); });
  return messages;
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> BoundExchange::sent() {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> counts;
  for (const Exchange::Sent& to : exchange_.sent()) counts.emplace_back(to.messages, to.bytes);
  return counts;
}

void bind_exchange(nb::module_& module) {
  nb::class_<Patience>(module, "Patience")
      .def(
          "__init__",
          [](Patience* self, double most_us, bool polite) {
            new (self) Patience(std::chrono::nanoseconds(static_cast<std::int64_t>(most_us * 1e3)));
            self->set_polite(polite);
          },
          nb::arg("most_us") = 50.0, nb::arg("polite") = true);

  nb::class_<Bell>(module, "Bell")
      .def(nb::init<>())
      .def("now", &Bell::now)
      .def("ring", &Bell::ring)
      .def("ring_all", &Bell::ring_all)
      .def("wait", &Bell::wait, nb::arg("seen"), nb::arg("patience"), nb::arg("timeout_s").none() = nb::none());

  nb::class_<Letter>(module, "Letter");

  nb::class_<BoundExchange>(module, "Exchange")
      .def_static("create", &BoundExchange::create, nb::arg("hosts"))
      .def(nb::init<int, std::size_t, bool>(), nb::arg("fd"), nb::arg("host"), nb::arg("writes_all") = false)
      .def_prop_ro("host", &BoundExchange::host)
      .def_prop_ro("hosts", &BoundExchange::hosts)
      .def("now", &BoundExchange::now)
      .def("ring", &BoundExchange::ring)
      .def("ring_all", &BoundExchange::ring_all)
      .def("ring_host", &BoundExchange::ring_host, nb::arg("host"))
      .def("place_of", &BoundExchange::place_of, nb::arg("array"))
      .def("window", &BoundExchange::window, nb::arg("host"), nb::arg("place"), nb::arg("size"))
      .def("wait", &BoundExchange::wait, nb::arg("seen"), nb::arg("patience"), nb::arg("timeout_s").none() = nb::none())
      .def("lease", &BoundExchange::lease, nb::arg("size"))
      .def("write", &BoundExchange::write, nb::arg("head"), nb::arg("parts"), nb::arg("readers"))
      .def("post", &BoundExchange::post, nb::arg("to"), nb::arg("letter"))
      .def("receive", &BoundExchange::receive)
      .def("abort", &BoundExchange::abort)
      .def_prop_ro("aborted", &BoundExchange::aborted)
      .def("sent", &BoundExchange::sent);

  nb::class_<BoundTally>(module, "Tally")
      .def(nb::init<BoundExchange&, std::size_t, std::uint64_t>(), nb::arg("exchange"), nb::arg("host"),
           nb::arg("place"), nb::keep_alive<1, 2>())
      .def("add", &BoundTally::add, nb::arg("done"))
      .def("want", &BoundTally::want, nb::arg("wanted"))
      .def("take", &BoundTally::take, nb::arg("done"))
      .def("clear", &BoundTally::clear)
      .def_prop_ro("done", &BoundTally::done)
      .def_prop_ro("issued", &BoundTally::issued);
}

}  // namespace raceway::python
