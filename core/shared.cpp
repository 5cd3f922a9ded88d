#include "shared.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>

#include "machine.hpp"

namespace raceway {
namespace {

constexpr std::uint64_t kMagic = 0x31'79'61'77'65'63'61'72;  // "raceway1"
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kHuge = std::size_t{2} << 20;
constexpr std::size_t kMostHosts = 4096;
// Half of what 48-bit addresses leave to a process, for all arenas; and no arena needs more than this.
constexpr std::size_t kAllArenas = std::size_t{64} << 40, kMostArena = std::size_t{1} << 40;
constexpr std::size_t kLeastArena = std::size_t{64} << 20;

struct Header {
  std::uint64_t magic;
  std::uint32_t version, hosts;
  std::uint64_t ring, slots, arena;
  alignas(kLine) std::atomic<std::uint32_t> aborted;
};
constexpr std::size_t kBells = kPage;  // where they begin; the header is before them

struct Places {
  std::size_t rings, ring_data, tables, arenas, size;
};

constexpr std::size_t table_stride(std::size_t slots) {
  return round_up(sizeof(ArenaControl), kPage) + round_up(slots * sizeof(SlotEntry), kPage);
}

Places places_of(std::size_t hosts, const SharedSizes& sizes) {
  Places places{};
  places.rings = round_up(kBells + hosts * kLine, kPage);
  places.ring_data = round_up(places.rings + hosts * hosts * sizeof(RingControl), kPage);
  places.tables = round_up(places.ring_data + hosts * hosts * sizes.ring, kPage);
  places.arenas = round_up(places.tables + hosts * table_stride(sizes.slots), kHuge);
  places.size = places.arenas + hosts * sizes.arena;
  return places;
}

std::system_error failure(const std::string& what) {
  return std::system_error(errno, std::generic_category(), what);
}

void* map(int fd, std::size_t size) {
  return mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
}

bool can_map(std::size_t size) {
  rlimit files{};
  if (getrlimit(RLIMIT_FSIZE, &files) == 0 && files.rlim_cur < size) return false;
  void* address = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address != MAP_FAILED) munmap(address, size);
  return address != MAP_FAILED;
}

// The largest arena whose mapping this process, and so its children, may have. Where that is limited (ulimit -v, -f),
// the rest of the program gets the larger half.
std::size_t fitting_arena(std::size_t hosts, SharedSizes sizes) {
  sizes.arena = std::min(kMostArena, std::bit_floor(kAllArenas / hosts));
  bool limited = false;
  while (!can_map(places_of(hosts, sizes).size)) {
    limited = true;
    sizes.arena /= 2;
    if (sizes.arena < 2 * kLeastArena) {
      throw std::runtime_error(
          "no address space for " + std::to_string(hosts) + " processes to share: even " +
          std::to_string(kLeastArena >> 20) +
          " MB for each cannot be mapped. Raise the limit (ulimit -v, ulimit -f) or use fewer processes.");
    }
  }
  return limited ? sizes.arena / 2 : sizes.arena;
}

}  // namespace

int Shared::create(std::size_t hosts, SharedSizes sizes) {
  if (hosts < 1 || hosts > kMostHosts) {
    throw std::invalid_argument("hosts=" + std::to_string(hosts) + ": there can be 1 to " + std::to_string(kMostHosts) +
                                " processes.");
  }
  if (sizes.arena == 0) sizes.arena = fitting_arena(hosts, sizes);
  const int fd = memfd_create("raceway", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) throw failure("memfd_create");
  Header header{};
  header.magic = kMagic;
  header.version = kVersion;
  header.hosts = static_cast<std::uint32_t>(hosts);
  header.ring = sizes.ring;
  header.slots = sizes.slots;
  header.arena = sizes.arena;
  const auto size = static_cast<off_t>(places_of(hosts, sizes).size);
  const bool made = ftruncate(fd, size) == 0 && pwrite(fd, &header, sizeof header, 0) == sizeof header;
  if (!made) {
    const std::system_error error = failure("the shared memory of " + std::to_string(hosts) + " processes");
    close(fd);
    throw error;
  }
  fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  return fd;
}

Shared::Shared(int fd, std::size_t host) : forks_(fork_count()) {
  struct stat status{};
  Header header{};
  if (fstat(fd, &status) != 0 || pread(fd, &header, sizeof header, 0) != sizeof header) {
    throw failure("file descriptor " + std::to_string(fd) + " is no shared memory of a program");
  }
  const SharedSizes sizes{header.ring, header.slots, header.arena};
  const Places places = places_of(header.hosts, sizes);
  if (header.magic != kMagic || header.version != kVersion || places.size != static_cast<std::size_t>(status.st_size)) {
    throw std::runtime_error("file descriptor " + std::to_string(fd) +
                             " is no shared memory of a program, or that of another version of raceway.");
  }
  hosts_ = header.hosts;
  if (host != kAnyHost && host >= hosts_) {
    throw std::invalid_argument("host=" + std::to_string(host) + ": the hosts are 0 to " + std::to_string(hosts_ - 1) +
                                ".");
  }
  ring_size_ = sizes.ring;
  max_slots_ = sizes.slots;
  arena_size_ = sizes.arena;
  rings_ = places.rings;
  ring_data_ = places.ring_data;
  tables_ = places.tables;
  arenas_ = places.arenas;
  size_ = places.size;
  void* address = map(fd, size_);
  if (address == MAP_FAILED) {
    throw failure("mapping " + std::to_string(size_ >> 20) + " MB of address space (ulimit -v limits it)");
  }
  base_ = static_cast<std::byte*>(address);
  madvise(base_ + arenas_, size_ - arenas_, MADV_HUGEPAGE);  // where the kernel gives them to shared memory
  madvise(base_, size_, MADV_DONTDUMP);                      // terabytes, most of them not there
  if (host == kAnyHost) return;
  if (host > 0) mprotect(base_ + arenas_, host * arena_size_, PROT_READ);
  if (host + 1 < hosts_) mprotect(arena(host + 1), (hosts_ - host - 1) * arena_size_, PROT_READ);
}

Shared::~Shared() {
  munmap(base_, size_);
}

std::atomic<std::uint32_t>& Shared::aborted() const {
  return at<Header>(0).aborted;
}

Signal& Shared::bell(std::size_t host) const {
  return at<Signal>(kBells + host * kLine);
}

// Those that one host reads lie side by side.
RingControl& Shared::ring(std::size_t from, std::size_t to) const {
  return at<RingControl>(rings_ + (to * hosts_ + from) * sizeof(RingControl));
}

std::byte* Shared::ring_data(std::size_t from, std::size_t to) const {
  return base_ + ring_data_ + (to * hosts_ + from) * ring_size_;
}

ArenaControl& Shared::arena_control(std::size_t host) const {
  return at<ArenaControl>(tables_ + host * table_stride(max_slots_));
}

SlotEntry& Shared::slot(std::size_t host, std::size_t index) const {
  const std::size_t table = tables_ + host * table_stride(max_slots_) + round_up(sizeof(ArenaControl), kPage);
  return at<SlotEntry>(table + index * sizeof(SlotEntry));
}

std::byte* Shared::arena(std::size_t host) const {
  return base_ + arenas_ + host * arena_size_;
}

bool Shared::forked() const {
  return forks_ != fork_count();
}

void Hold::let_go() {
  if (shared_->forked()) return;
  SlotEntry& slot = entry();
  if (slot.holds.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  std::atomic<std::uint32_t>& freed = shared_->arena_control(host_).freed;
  std::uint32_t top = freed.load(std::memory_order_relaxed);
  do {
    slot.next_freed.store(top, std::memory_order_relaxed);
  } while (!freed.compare_exchange_weak(top, slot_ + 1, std::memory_order_release, std::memory_order_relaxed));
}

}  // namespace raceway
