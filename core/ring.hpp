// Messages from one process to one other, in order, through a ring of bytes that both map. One thread at a time writes,
// one reads. A message lies in one piece: if it does not fit before the ring's end, the rest of the ring is skipped.
#pragma once

#include <cstring>
#include <span>
#include <stdexcept>

#include "shared.hpp"

namespace raceway {

namespace ring {

inline constexpr std::size_t kAlign = 16;
inline constexpr std::uint32_t kMessage = 0x6d657373, kSkip = 0x736b6970;

struct Head {
  std::uint32_t kind;
  std::uint32_t size;  // of what follows
  std::uint64_t unused;
};
static_assert(sizeof(Head) == kAlign);

constexpr std::uint64_t space(std::size_t size) {
  return sizeof(Head) + round_up(size, kAlign);
}

}  // namespace ring

class RingWriter {
 public:
  RingWriter(const Shared& shared, std::size_t from, std::size_t to)
      : control_(shared.ring(from, to)), data_(shared.ring_data(from, to)), size_(shared.ring_size()) {
    read_ = control_.read.load(std::memory_order_acquire);
  }

  // If false, the reader rings the writer's bell when it has made room.
  bool has_room(std::size_t size) {
    const std::uint64_t need = skipped(size) + ring::space(size);
    if (free() >= need) return true;
    read_ = control_.read.load(std::memory_order_acquire);
    if (free() >= need) return true;
    control_.writer_waits.store(1, std::memory_order_seq_cst);
    read_ = control_.read.load(std::memory_order_seq_cst);  // it may have gone on just before it could see that
    return free() >= need;
  }

  // There must be room.
  void push(std::span<const std::byte> message) {
    std::uint64_t position = written();
    if (const std::uint64_t rest = skipped(message.size()); rest > 0) {
      put_head(position, {ring::kSkip, static_cast<std::uint32_t>(rest - sizeof(ring::Head)), 0});
      position += rest;
    }
    put_head(position, {ring::kMessage, static_cast<std::uint32_t>(message.size()), 0});
    if (!message.empty()) {
      std::memcpy(data_ + position % size_ + sizeof(ring::Head), message.data(), message.size());
    }
    control_.written.store(position + ring::space(message.size()), std::memory_order_release);
  }

 private:
  std::uint64_t written() const { return control_.written.load(std::memory_order_relaxed); }
  std::uint64_t free() const { return size_ - (written() - read_); }

  // How much of the ring's end is too short for a message of this size.
  std::uint64_t skipped(std::size_t size) const {
    const std::uint64_t rest = size_ - written() % size_;
    return rest < ring::space(size) ? rest : 0;
  }

  void put_head(std::uint64_t position, const ring::Head& head) {
    std::memcpy(data_ + position % size_, &head, sizeof head);
  }

  RingControl& control_;
  std::byte* data_;
  std::uint64_t size_;
  std::uint64_t read_;  // what the reader's position was when last looked at
};

class RingReader {
 public:
  RingReader(const Shared& shared, std::size_t from, std::size_t to)
      : control_(shared.ring(from, to)),
        writer_bell_(shared.bell(from)),
        data_(shared.ring_data(from, to)),
        size_(shared.ring_size()) {}

  bool has_mail() const {
    return control_.written.load(std::memory_order_acquire) != control_.read.load(std::memory_order_relaxed);
  }

  // Gives each message that lies here now to `take`, which must copy what it needs. One during which it throws is gone.
  template <class Take>
  void drain(Take take) {
    const std::uint64_t end = control_.written.load(std::memory_order_acquire);
    std::uint64_t position = control_.read.load(std::memory_order_relaxed);
    if (position == end) return;
    while (position != end) {
      const ring::Head head = head_at(position, end);
      const std::byte* message = data_ + position % size_ + sizeof head;
      const Advance advance(control_, position += ring::space(head.size));
      if (head.kind == ring::kMessage) take(std::span(message, head.size));
    }
    if (control_.writer_waits.load(std::memory_order_seq_cst) != 0) {
      control_.writer_waits.store(0, std::memory_order_seq_cst);
      writer_bell_.raise();
    }
  }

 private:
  struct Advance {
    Advance(RingControl& ring, std::uint64_t to) : control(ring), position(to) {}
    ~Advance() { control.read.store(position, std::memory_order_seq_cst); }
    RingControl& control;
    const std::uint64_t position;
  };

  ring::Head head_at(std::uint64_t position, std::uint64_t end) const {
    ring::Head head{};
    std::memcpy(&head, data_ + position % size_, sizeof head);
    const std::uint64_t space = ring::space(head.size);
    const bool known = head.kind == ring::kMessage || head.kind == ring::kSkip;
    if (!known || space > end - position || position % size_ + space > size_) {
      throw std::runtime_error("the messages of another process are garbage: something has overwritten its memory.");
    }
    return head;
  }

  RingControl& control_;
  Signal& writer_bell_;
  const std::byte* data_;
  std::uint64_t size_;
};

}  // namespace raceway
