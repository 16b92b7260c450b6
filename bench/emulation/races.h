// Finds races in shared memory: two threads touch a byte between two barriers, and one of them writes.
//
// GCC's -fsanitize=thread calls a function at each access; these are ours. They see, too, what is read or
// written in device memory outside of a tensor: there all tensors lie in one piece of memory, apart.
#include "host.h"

#define UNSEEN __attribute__((no_sanitize("thread")))

// How many bytes of device memory outside of tensors the last kernel has touched.
extern "C" int outside_of_tensors;
int outside_of_tensors;

namespace races {

constexpr int LARGEST = 256 << 10;
struct Cell { int writer, reader; bool is_shared; };  // threads + 1; whether several read it
static Cell cells[LARGEST];
static unsigned char *arena, *device;
static const unsigned char* is_of_tensor;  // for each byte of device memory
static unsigned long size, device_size;
static int found;

UNSEEN static void forget() { std::memset(cells, 0, size * sizeof(Cell)); }
// Shared memory begins as NaN: what is read before it is written shows in the result.
UNSEEN static void begin() {
  forget();
  std::memset(arena, 0xFF, size);
}

UNSEEN static void touch_device(unsigned long at, int bytes, bool writes) {
  for (int i = 0; i < bytes; ++i, ++at) {
    if (at >= device_size) return;
    if (!is_of_tensor[at] && outside_of_tensors++ == 0)
      std::fprintf(stderr, "thread %d of a block %s byte %lu of device memory, outside of any tensor\n",
                   host::current, writes ? "writes" : "reads", at);
  }
}

UNSEEN static void touch(void* address, int bytes, bool writes) {
  unsigned long at = (unsigned char*)address - arena;
  const int self = host::current + 1;
  if (at >= size) return touch_device((unsigned char*)address - device, bytes, writes);
  for (int i = 0; i < bytes; ++i, ++at) {
    if (at >= size) return;
    Cell& cell = cells[at];
    const bool is_race = (cell.writer && cell.writer != self) ||
                         (writes && cell.reader && (cell.is_shared || cell.reader != self));
    if (is_race && found++ == 0)
      std::fprintf(stderr, "race at byte %lu: thread %d %s, thread %d wrote, %d read\n", at, self - 1,
                   writes ? "writes" : "reads", cell.writer - 1, cell.reader - 1);
    if (writes) cell.writer = self;
    else if (cell.reader && cell.reader != self) cell.is_shared = true;
    else cell.reader = self;
  }
}

UNSEEN static void watch(unsigned char* memory, unsigned long bytes) {
  arena = memory, size = bytes, found = 0, outside_of_tensors = 0;
  host::at_block = begin, host::at_barrier = forget;
}

}  // namespace races

extern "C" {
UNSEEN void watch_device(unsigned char* memory, unsigned long bytes, const unsigned char* is_of_tensor) {
  races::device = memory, races::device_size = bytes, races::is_of_tensor = is_of_tensor;
}
UNSEEN void __tsan_init() {}
UNSEEN void __tsan_func_entry(void*) {}
UNSEEN void __tsan_func_exit() {}
UNSEEN void __tsan_vptr_update(void**, void*) {}
UNSEEN void __tsan_vptr_read(void**) {}
UNSEEN void __tsan_read_range(void* p, unsigned long n) { races::touch(p, n, false); }
UNSEEN void __tsan_write_range(void* p, unsigned long n) { races::touch(p, n, true); }
#define ACCESS(N)                                                     \
  UNSEEN void __tsan_read##N(void* p) { races::touch(p, N, false); }          \
  UNSEEN void __tsan_write##N(void* p) { races::touch(p, N, true); }          \
  UNSEEN void __tsan_unaligned_read##N(void* p) { races::touch(p, N, false); } \
  UNSEEN void __tsan_unaligned_write##N(void* p) { races::touch(p, N, true); }
ACCESS(1) ACCESS(2) ACCESS(4) ACCESS(8) ACCESS(16)
UNSEEN void* __tsan_memcpy(void* to, const void* from, unsigned long n) {
  races::touch((void*)from, n, false), races::touch(to, n, true);
  return std::memcpy(to, from, n);
}
UNSEEN void* __tsan_memset(void* to, int value, unsigned long n) {
  races::touch(to, n, true);
  return std::memset(to, value, n);
}
}
