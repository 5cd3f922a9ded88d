// How the processes of one program send each other messages: a head and any number of parts, all of them bytes.
//
// A small message goes through the ring to its reader. What is large is written once, into the writer's arena, and any
// number of readers see it there; the ring then carries where it is. Parts that lie in the arena already (leases) are
// not copied at all. A message's memory is used again when no reader holds it.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "arena.hpp"
#include "ring.hpp"

namespace raceway {

using Bytes = std::span<const std::byte>;

// A message that is ready to be posted to as many readers as it was written for.
class Letter {
 public:
  Letter() = default;
  Letter(Letter&&) = default;
  Letter& operator=(Letter&&) = default;

  std::size_t size() const { return size_; }  // of head and parts
  std::uint32_t left() const { return left_; }
  bool in_ring() const { return holds_.empty(); }

 private:
  friend class Exchange;
  std::vector<std::byte> record_;  // what lies in the ring
  std::vector<Hold> holds_;        // one for each slot that the record names
  std::size_t size_ = 0;
  std::uint32_t left_ = 0;
  const void* home_ = nullptr;
};

// A message that has arrived. Unless a part has a hold of its own, it lies in `body`.
struct Arrival {
  struct Part {
    Bytes bytes;
    Hold hold;
  };

  std::size_t from;
  Bytes head, body;
  std::vector<Part> parts;
  Hold hold;  // on head and body; without one they lie in the ring, and are gone when the call returns
};

class Exchange {
 public:
  // There must be only one at a time for a host. A host whose process was killed can be taken up by another.
  Exchange(std::shared_ptr<const Shared> shared, std::size_t host);

  std::size_t host() const { return host_; }
  std::size_t hosts() const { return shared_->hosts(); }
  Signal& bell() const { return shared_->bell(host_); }

  void ring(std::size_t host) const { shared_->bell(require_host(host)).raise_one(); }

  // Where in this host's arena bytes lie that it has leased, for others to find them at; nothing if they lie elsewhere.
  std::optional<std::uint64_t> place_of(Bytes bytes) const;

  // What another says lies in an arena. It must be held there for as long as this is used.
  std::span<std::byte> window(std::size_t host, std::uint64_t place, std::size_t size) const;

  // Memory to be filled in place and sent as a part. It must not change after that.
  Hold lease(std::size_t size);

  Letter write(Bytes head, std::span<const Bytes> parts, std::uint32_t readers);

  // False if there is no room in the ring: then this host's bell rings when there is. Any thread may post.
  bool post(std::size_t to, Letter& letter);

  // Whether messages lie here that have not been received.
  bool has_mail() const;

  // Gives away all messages that lie here now, in order per sender. One thread at a time.
  void receive(const std::function<void(Arrival&)>& take);

  void abort();
  bool aborted() const { return shared_->aborted().load(std::memory_order_relaxed) != 0; }

  struct Sent {
    std::uint64_t messages = 0, bytes = 0;
  };
  std::vector<Sent> sent();  // per destination

  Arena& arena() { return arena_; }

 private:
  void require_own_process() const;
  std::size_t require_host(std::size_t host) const;
  void read(std::size_t from, Bytes record, const std::function<void(Arrival&)>& take);
  Hold adopt(std::size_t from, std::uint32_t slot);

  const std::shared_ptr<const Shared> shared_;
  const std::size_t host_;
  Arena arena_;

  std::mutex posting_;
  std::vector<RingWriter> outgoing_;  // by host, the own one too
  std::vector<Sent> sent_;

  std::vector<RingReader> incoming_;
  std::vector<std::vector<std::uint32_t>> known_;  // per sender and slot: the generation whose pages are mapped here
};

}  // namespace raceway
