#include "exchange.hpp"

#include <algorithm>
#include <string>

namespace raceway {
namespace {

// Up to here a message is copied through the ring, which is quicker than a slot of its own.
constexpr std::size_t kInRing = 16 << 10;
constexpr std::uint32_t kInBlock = UINT32_MAX;  // in place of a slot's number

// A record is a Note and a block, or a Note that says where in the arena the block is. A block is a table of the parts,
// the head, and those parts that have no slot of their own.
struct Note {
  std::uint32_t slot, num_parts;
  std::uint64_t offset, size;  // of the block; the offset counts from the arena's begin
  std::uint64_t head_size, body_offset;
};

struct Entry {
  std::uint32_t slot, unused;
  std::uint64_t offset, size;  // the offset counts from the block's begin, or from the arena's
};

void copy(std::byte* to, const void* from, std::size_t size) {
  if (size > 0) std::memcpy(to, from, size);
}

void require(bool sound) {
  if (!sound) {
    throw std::runtime_error("a message of another process is garbage: something has overwritten its memory.");
  }
}

// `whole` from `offset` on, `size` bytes.
Bytes within(Bytes whole, std::uint64_t offset, std::uint64_t size) {
  require(offset <= whole.size() && size <= whole.size() - offset);
  return whole.subspan(offset, size);
}

}  // namespace

Exchange::Exchange(std::shared_ptr<const Shared> shared, std::size_t host)
    : shared_(std::move(shared)),
      host_(host),
      arena_(shared_, host),
      sent_(shared_->hosts()),
      known_(shared_->hosts()) {
  for (std::size_t other = 0; other < hosts(); ++other) {
    outgoing_.emplace_back(*shared_, host_, other);
    incoming_.emplace_back(*shared_, other, host_);
  }
  bell().forget_waiters();
}

void Exchange::require_own_process() const {
  if (!shared_->forked()) return;
  throw std::runtime_error("this exchange was opened before a fork and belongs to the parent process.");
}

std::size_t Exchange::require_host(std::size_t host) const {
  if (host < hosts()) return host;
  throw std::invalid_argument("host=" + std::to_string(host) + ": the hosts are 0 to " + std::to_string(hosts() - 1) +
                              ".");
}

std::optional<std::uint64_t> Exchange::place_of(Bytes bytes) const {
  const std::byte* begin = shared_->arena(host_);
  const std::less<> before;  // also of pointers into different memory
  if (before(bytes.data(), begin) || before(begin + shared_->arena_size(), bytes.data() + bytes.size())) return {};
  return static_cast<std::uint64_t>(bytes.data() - begin);
}

std::span<std::byte> Exchange::window(std::size_t host, std::uint64_t place, std::size_t size) const {
  std::byte* begin = shared_->arena(require_host(host));
  if (place > shared_->arena_size() || size > shared_->arena_size() - place) {
    throw std::invalid_argument("place=" + std::to_string(place) + ", size=" + std::to_string(size) +
                                ": that is outside the arena of host " + std::to_string(host) + ".");
  }
  return {begin + place, size};
}

Hold Exchange::lease(std::size_t size) {
  require_own_process();
  return arena_.take(size);
}

Letter Exchange::write(Bytes head, std::span<const Bytes> parts, std::uint32_t readers) {
  require_own_process();
  if (readers == 0) throw std::invalid_argument("readers=0: a letter is written for one reader or more.");
  Letter letter;
  letter.left_ = readers;
  letter.home_ = this;
  letter.size_ = head.size();

  std::vector<Entry> table(parts.size());
  std::size_t body_size = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    letter.size_ += parts[i].size();
    if (Hold lease = arena_.holding(parts[i].data(), parts[i].size())) {
      table[i] = {lease.slot(), 0, arena_.offset_of(parts[i].data()), parts[i].size()};
      letter.holds_.push_back(std::move(lease));
    } else {
      table[i] = {kInBlock, 0, body_size, parts[i].size()};
      body_size += round_up(parts[i].size(), kCacheLine);
    }
  }
  const std::size_t table_size = parts.size() * sizeof(Entry);
  Note note{kInBlock,    static_cast<std::uint32_t>(parts.size()),      0, 0,
            head.size(), round_up(table_size + head.size(), kCacheLine)};
  note.size = note.body_offset + body_size;

  std::byte* block = nullptr;
  if (note.size <= kInRing) {
    letter.record_.resize(sizeof note + note.size);
    block = letter.record_.data() + sizeof note;
  } else {
    Hold hold = arena_.take(note.size);
    letter.record_.resize(sizeof note);
    block = hold.data();
    note.slot = hold.slot();
    note.offset = arena_.offset_of(block);
    letter.holds_.push_back(std::move(hold));
  }
  copy(letter.record_.data(), &note, sizeof note);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (table[i].slot != kInBlock) continue;
    table[i].offset += note.body_offset;
    copy(block + table[i].offset, parts[i].data(), parts[i].size());
  }
  copy(block, table.data(), table_size);
  copy(block + table_size, head.data(), head.size());
  return letter;
}

bool Exchange::post(std::size_t to, Letter& letter) {
  require_own_process();
  require_host(to);
  {
    const std::lock_guard lock(posting_);
    if (letter.left_ == 0 || letter.home_ != this) {
      throw std::invalid_argument(letter.left_ == 0
                                      ? "the letter has been posted to all the readers that it was written for."
                                      : "the letter was written by another exchange.");
    }
    RingWriter& ring = outgoing_[to];
    if (!ring.has_room(letter.record_.size())) return false;
    letter.left_ -= 1;
    for (Hold& hold : letter.holds_) {
      if (letter.left_ > 0) {
        hold.add();
      } else {
        hold.pass_on();
      }
    }
    ring.push(letter.record_);
    sent_[to].messages += 1;
    sent_[to].bytes += letter.size_;
  }
  shared_->bell(to).raise_one();
  return true;
}

bool Exchange::has_mail() const {
  return std::any_of(incoming_.begin(), incoming_.end(), [](const RingReader& ring) { return ring.has_mail(); });
}

void Exchange::receive(const std::function<void(Arrival&)>& take) {
  require_own_process();
  for (std::size_t from = 0; from < hosts(); ++from) {
    incoming_[from].drain([&](Bytes record) { read(from, record, take); });
  }
}

// The counts of a message are ours from here on, whatever becomes of it.
Hold Exchange::adopt(std::size_t from, std::uint32_t slot) {
  require(slot < shared_->max_slots());
  Hold hold(shared_, from, slot);
  const SlotEntry& entry = hold.entry();
  require(entry.offset <= shared_->arena_size() && entry.size <= shared_->arena_size() - entry.offset);
  if (known_[from].size() <= slot) known_[from].resize(slot + std::size_t{1});
  populate_for_reading(*shared_, from, slot, known_[from][slot]);
  return hold;
}

void Exchange::read(std::size_t from, Bytes record, const std::function<void(Arrival&)>& take) {
  const Bytes arena(shared_->arena(from), shared_->arena_size());
  Note note{};
  copy(reinterpret_cast<std::byte*>(&note), within(record, 0, sizeof note).data(), sizeof note);
  Arrival arrival{from, {}, {}, {}, {}};
  Bytes block;
  if (note.slot == kInBlock) {
    block = within(record, sizeof note, note.size);
  } else {
    arrival.hold = adopt(from, note.slot);
    block = within(arena, note.offset, note.size);
  }
  const Bytes table = within(block, 0, note.num_parts * sizeof(Entry));
  arrival.head = within(block, table.size(), note.head_size);
  arrival.body = within(block, note.body_offset, note.size - note.body_offset);
  arrival.parts.reserve(note.num_parts);
  for (std::size_t i = 0; i < note.num_parts; ++i) {
    Entry entry{};
    copy(reinterpret_cast<std::byte*>(&entry), table.data() + i * sizeof entry, sizeof entry);
    if (entry.slot == kInBlock) {
      arrival.parts.push_back({within(block, entry.offset, entry.size), {}});
    } else {
      Hold hold = adopt(from, entry.slot);
      arrival.parts.push_back({within(arena, entry.offset, entry.size), std::move(hold)});
    }
  }
  take(arrival);
}

void Exchange::abort() {
  shared_->aborted().store(1, std::memory_order_seq_cst);
  for (std::size_t host = 0; host < hosts(); ++host) shared_->bell(host).raise();
}

std::vector<Exchange::Sent> Exchange::sent() {
  const std::lock_guard lock(posting_);
  return sent_;
}

}  // namespace raceway
