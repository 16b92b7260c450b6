// Enough of CUDA to run kernels on the CPU, one block after the other.
//
// The threads of a block are fibers: each runs until it waits, for its warp or its block, and goes on
// when all of them wait. A wrong barrier shows as a deadlock, which ends the program.
#pragma once
#include <ucontext.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(threads)
#define __shared__ static

struct Index3 { unsigned x, y, z; };
static Index3 threadIdx, blockIdx, blockDim, gridDim;

namespace host {

enum State { READY, AT_WARP, AT_BLOCK, DONE };
struct Fiber {
  ucontext_t context;
  State state;
  Index3 index;
  std::vector<char> stack;
};
static std::vector<Fiber> fibers;
static ucontext_t scheduler;
static int current;
static void (*body)(const void*);  // a kernel's call, and what it needs
static const void* call;
// Threads run forward, or backward: what they compute must not depend on it.
static bool is_backward;
// What a race detector does: before each block, and when all threads of it have waited.
static void (*at_block)(), (*at_barrier)();

static void enter() {
  body(call);
  fibers[current].state = DONE;
  swapcontext(&fibers[current].context, &scheduler);
}

static void wait(State state) {
  fibers[current].state = state;
  swapcontext(&fibers[current].context, &scheduler);
}

// Lets those go on that wait for each other, if all of them do.
static bool release(int begin, int end, State state) {
  for (int i = begin; i < end; ++i)
    if (fibers[i].state != state && fibers[i].state != DONE) return false;
  bool any = false;
  for (int i = begin; i < end; ++i)
    if (fibers[i].state == state) fibers[i].state = READY, any = true;
  return any;
}

static int thread() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }

// What a thread copies without waiting: until it does, the place holds NaN, and other threads that touch it
// race with the copy. Whole words only, so that each is seen by what looks for races.
struct Copy { unsigned* to; const unsigned* from; int bytes; bool exists; int group; };
static std::vector<Copy> copies[1024];
static int groups[1024];

static void begin_copy(void* to, const void* from, int bytes, bool exists) {
  if (((size_t)to | (size_t)from) % bytes) std::fprintf(stderr, "a copy of %d bytes is not aligned\n", bytes), std::abort();
  const Copy copy{(unsigned*)to, (const unsigned*)from, bytes, exists, groups[thread()]};
  for (int i = 0; i < bytes / 4; ++i) copy.to[i] = 0xFFFFFFFFu;
  copies[thread()].push_back(copy);
}
static void end_group() { ++groups[thread()]; }
// Lets all copies arrive but those of the last groups.
static void wait_for_groups(int last) {
  std::vector<Copy>& own = copies[thread()];
  size_t done = 0;
  for (; done < own.size() && own[done].group < groups[thread()] - last; ++done)
    for (int i = 0; i < own[done].bytes / 4; ++i) own[done].to[i] = own[done].exists ? own[done].from[i] : 0u;
  own.erase(own.begin(), own.begin() + done);
}

static void run_block() {
  const int count = blockDim.x * blockDim.y * blockDim.z;
  if ((int)fibers.size() < count) fibers.resize(count);
  for (int i = 0; i < count; ++i) {
    Fiber& fiber = fibers[i];
    fiber.state = READY;
    fiber.index = {i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
    fiber.stack.resize(64 << 10);
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    makecontext(&fiber.context, enter, 0);
  }
  for (std::vector<Copy>& own : copies) own.clear();
  if (at_block) at_block();
  for (int done = 0; done < count;) {
    bool moved = false;
    for (int turn = 0; turn < count; ++turn) {
      current = is_backward ? count - 1 - turn : turn;
      if (fibers[current].state != READY) continue;
      threadIdx = fibers[current].index;
      swapcontext(&scheduler, &fibers[current].context);
      done += fibers[current].state == DONE;
      moved = true;
    }
    for (int warp = 0; warp < count; warp += 32) moved |= release(warp, warp + 32 < count ? warp + 32 : count, AT_WARP);
    if (release(0, count, AT_BLOCK)) {
      moved = true;
      if (at_barrier) at_barrier();
    }
    if (!moved && done < count) std::fprintf(stderr, "deadlock\n"), std::abort();
  }
}

template <class Kernel> static void launch(const unsigned* grid, const unsigned* block, const Kernel& kernel) {
  gridDim = {grid[0], grid[1], grid[2]};
  blockDim = {block[0], block[1], block[2]};
  body = [](const void* given) { (*static_cast<const Kernel*>(given))(); };
  call = &kernel;
  for (blockIdx.z = 0; blockIdx.z < grid[2]; ++blockIdx.z)
    for (blockIdx.y = 0; blockIdx.y < grid[1]; ++blockIdx.y)
      for (blockIdx.x = 0; blockIdx.x < grid[0]; ++blockIdx.x) run_block();
}


template <class To, class From> static To bits_as(From from) {
  To to;
  static_assert(sizeof(to) == sizeof(from));
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

static float half(unsigned short bits) { return (float)bits_as<_Float16>(bits); }
static unsigned short to_half(float x) { return bits_as<unsigned short>((_Float16)x); }
static unsigned short to_bfloat(float x) {
  unsigned bits = bits_as<unsigned>(x);
  if (x != x) return bits >> 16 | 0x40;
  return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}
static unsigned to_tf32(float x) { return (bits_as<unsigned>(x) + 0x1000) & ~0x1FFFu; }

// C += A B of a warp, registers laid out as in PTX's "Matrix Fragments for mma.m16n8k16" (of 16-bit
// elements) and "… m16n8k8" (tf32): `per` elements to a register, decoded by `decode`.
template <class Decode> static void multiply(float* c, const unsigned* a, const unsigned* b, int per, Decode decode) {
  static unsigned left[1024][4], right[1024][2];
  const int self = thread(), warp = self / 32 * 32, lane = self % 32, depth = 8 * per;
  std::memcpy(left[self], a, sizeof(left[0]));
  std::memcpy(right[self], b, sizeof(right[0]));
  wait(AT_WARP);
  for (int r = 0; r < 4; ++r) {
    const int row = lane / 4 + r / 2 * 8, column = lane % 4 * 2 + r % 2;
    for (int k = 0; k < depth; ++k) {
      const int half_depth = depth / 2, place = k % half_depth / per, part = k % per;
      const int high_k = k >= half_depth, high_row = row >= 8;
      const unsigned x = left[warp + row % 8 * 4 + place][high_row + 2 * high_k];
      const unsigned y = right[warp + column * 4 + place][high_k];
      c[r] += decode(x, part) * decode(y, part);
    }
  }
  wait(AT_WARP);
}
// Four matrices of 8 x 8 elements of 16 bits, each thread with the address of a row of 16 bytes: of each one a
// thread gets two neighbours of a row, or, turned, of a column.
static void load_matrices(unsigned* x, const void* row, bool is_turned) {
  static const unsigned short* rows[1024];
  const int self = thread(), warp = self / 32 * 32, lane = self % 32;
  if ((size_t)row % 16) std::fprintf(stderr, "a row of a matrix is not aligned\n"), std::abort();
  rows[self] = (const unsigned short*)row;
  wait(AT_WARP);
  for (int matrix = 0; matrix < 4; ++matrix) {
    unsigned parts[2];
    for (int part = 0; part < 2; ++part) {
      const int outer = lane / 4, inner = lane % 4 * 2 + part;
      parts[part] = rows[warp + matrix * 8 + (is_turned ? inner : outer)][is_turned ? outer : inner];
    }
    x[matrix] = parts[0] | parts[1] << 16;
  }
  wait(AT_WARP);
}
static float half_of(unsigned word, int part) { return half(word >> 16 * part & 0xFFFF); }
static float bfloat_of(unsigned word, int part) { return bits_as<float>((word >> 16 * part & 0xFFFF) << 16); }
static float tf32_of(unsigned word, int) { return bits_as<float>(word); }

// A parameter of 8 bytes: an address of any type, or a number.
struct Word {
  unsigned long long bits;
  template <class T> operator T*() const { return (T*)bits; }
  operator unsigned long long() const { return bits; }
};

}  // namespace host

static float __uint_as_float(unsigned x) { return host::bits_as<float>(x); }
static float __int_as_float(int x) { return host::bits_as<float>(x); }
static void __syncthreads() { host::wait(host::AT_BLOCK); }
static float __shfl_xor_sync(unsigned, float x, int step) {
  static float values[1024];
  const int self = host::thread();
  values[self] = x;
  host::wait(host::AT_WARP);
  const float other = values[self ^ step];
  host::wait(host::AT_WARP);
  return other;
}
