// What a fused kernel is made of: products in registers, reductions, copies of 16 bytes.
//
// A block has WARPS warps. Tiles lie in shared memory; how, the caller's index functions say, so that
// these functions know rows and columns only. Sizes are the tiles' own: what an instruction would
// read outside of them is 0, what it would write there is left out.
#pragma once
#include "tiles.cuh"

#ifndef WARPS
#define WARPS 8
#endif
constexpr int THREADS = 32 * WARPS;

// The element of a product that a thread has: which of its strips of 16 rows, of its pieces of 8
// columns, of its 4 elements there.
struct Own { int strip, piece, element; };

// A product of R rows and C columns in the registers of a block. A warp owns strips of 16 rows, or
// shares one with others, and of each strip pieces of 8 columns: those that `mma` computes at once.
template <int R, int C> struct Sums {
  static constexpr int STRIPS = (R + 15) / 16, PIECES = (C + 7) / 8;
  static constexpr int SHARE = STRIPS >= WARPS ? 1 : WARPS / STRIPS;  // warps to a strip
  static constexpr int TEAMS = WARPS / SHARE;
  static constexpr int OWN_STRIPS = (STRIPS + TEAMS - 1) / TEAMS, OWN_PIECES = (PIECES + SHARE - 1) / SHARE;
  float v[OWN_STRIPS][OWN_PIECES][4];
  DEVICE float& operator[](Own own) { return v[own.strip][own.piece][own.element]; }
};

DEVICE int warp_of_block() { return threadIdx.x / 32; }

// The first row of a thread's strip, and the first column of its piece; -1 where it has no such.
template <int R, int C> DEVICE int first_row(int strip) {
  typedef Sums<R, C> S;
  const int team = warp_of_block() / S::SHARE, number = strip * S::TEAMS + team;
  return team < S::TEAMS && number < S::STRIPS ? number * 16 : -1;
}
template <int R, int C> DEVICE int first_column(int piece) {
  typedef Sums<R, C> S;
  const int number = piece * S::SHARE + warp_of_block() % S::SHARE;
  return number < S::PIECES ? number * 8 : -1;
}

// Calls f(row, column, own) for all elements that a thread has.
template <int R, int C, class F> DEVICE void each(const F& f) {
  typedef Sums<R, C> S;
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int strip = 0; strip < S::OWN_STRIPS; ++strip) {
    const int top = first_row<R, C>(strip);
#pragma unroll
    for (int piece = 0; piece < S::OWN_PIECES; ++piece) {
      const int left = first_column<R, C>(piece);
      if (top < 0 || left < 0) continue;
#pragma unroll
      for (int element = 0; element < 4; ++element) {
        const int row = top + lane / 4 + element / 2 * 8, column = left + lane % 4 * 2 + element % 2;
        if ((R % 16 == 0 || row < R) && (C % 8 == 0 || column < C)) f(row, column, Own{strip, piece, element});
      }
    }
  }
}

template <int R, int C> DEVICE void clear(Sums<R, C>& sums) {
#pragma unroll
  for (int i = 0; i < Sums<R, C>::OWN_STRIPS; ++i)
#pragma unroll
    for (int j = 0; j < Sums<R, C>::OWN_PIECES; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) sums.v[i][j][e] = 0.0f;
}

// How a product reads a tile: elements one by one; two neighbours along the sum; or 8 x 8 elements at once,
// of which 8 in a row lie along the sum, or across it.
enum Reading { ONE, PAIRS, ALONG, ACROSS };

// The address of shared memory as its own instructions take it.
DEVICE u32 shared_address(const void* pointer) {
  u64 y;
  asm("cvta.to.shared.u64 %0, %1;" : "=l"(y) : "l"(pointer));
  return (u32)y;
}

// Four matrices of 8 x 8 elements; a thread has the address of a row of one: of the first matrix the first
// eight threads, and so on.
template <bool TURNED> DEVICE void load_matrices(u32 (&x)[4], const void* row) {
  if (TURNED)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(shared_address(row)) : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(shared_address(row)) : "memory");
}

// Two neighbours along k as a register of 32 bits.
template <int N, int K, Reading READING, class T, class At>
DEVICE u32 two(const T* tile, const At& at, int n, int k) {
  if (N % 16 && n >= N) return 0;
  if (K % 16 && k >= K) return 0;
  const u16* bits = (const u16*)tile;
  if (READING == PAIRS && K % 2 == 0) return *(const u32*)(bits + at(n, k));
  const u32 low = bits[at(n, k)];
  return K % 2 && k + 1 >= K ? low : low | (u32)bits[at(n, k + 1)] << 16;
}

// The registers x of four matrices, whose first rows or columns are n[r], and first places of the sum k[r].
// What is outside of the tile is 0 along the sum, and anything else across it: nobody uses what that gives.
template <int N, int K, Reading READING, class T, class At>
DEVICE void read_matrices(u32 (&x)[4], const T* tile, const At& at, const int (&n)[4], const int (&k)[4]) {
  const int lane = threadIdx.x % 32, group = lane / 4, word = lane % 4 * 2;
  if (READING == ALONG || READING == ACROSS) {
    const int matrix = lane / 8, own = lane % 8;
    int row = matrix < 2 ? (matrix ? n[1] : n[0]) : (matrix == 2 ? n[2] : n[3]);
    int place = matrix < 2 ? (matrix ? k[1] : k[0]) : (matrix == 2 ? k[2] : k[3]);
    if (READING == ALONG) row += own; else place += own;
    if (N % 16 && row >= N) row = READING == ALONG ? N - 1 : N - 8;
    if (K % 16 && place >= K) place = READING == ALONG ? K - 8 : K - 1;
    load_matrices<READING == ACROSS>(x, tile + at(row, place));
#pragma unroll
    for (int r = 0; r < 4; ++r)
      if (K % 16 && k[r] + word >= K) x[r] = 0;
  } else {
#pragma unroll
    for (int r = 0; r < 4; ++r) x[r] = two<N, K, READING>(tile, at, n[r] + group, k[r] + word);
  }
}

// sums += A B on tensor cores: A of R x K, B of K x C; a(row, k) and b(column, k) are offsets.
template <int R, int C, int K, Reading A_READING, Reading B_READING, class T, class A, class B>
DEVICE void multiply(Sums<R, C>& sums, const T* left_tile, const A& a, const T* right_tile, const B& b) {
  typedef Sums<R, C> S;
  constexpr int STEPS = S::OWN_STRIPS * S::OWN_PIECES > 8 ? 2 : 4;
#pragma unroll STEPS
  for (int k = 0; k < K; k += 16) {
    u32 x[S::OWN_STRIPS][4];
#pragma unroll
    for (int strip = 0; strip < S::OWN_STRIPS; ++strip) {
      const int top = first_row<R, C>(strip);
      if (top >= 0)
        read_matrices<R, K, A_READING>(x[strip], left_tile, a, {top, top + 8, top, top + 8}, {k, k, k + 8, k + 8});
    }
#pragma unroll
    for (int piece = 0; piece < S::OWN_PIECES; piece += 2) {
      const int left = first_column<R, C>(piece);
      const int next = piece + 1 < S::OWN_PIECES ? first_column<R, C>(piece + 1) : -1;
      if (left < 0 || first_row<R, C>(0) < 0) continue;
      const int other = next < 0 ? left : next;
      u32 y[4];
      read_matrices<C, K, B_READING>(y, right_tile, b, {left, left, other, other}, {k, k + 8, k, k + 8});
#pragma unroll
      for (int strip = 0; strip < S::OWN_STRIPS; ++strip) {
        if (first_row<R, C>(strip) < 0) continue;
        Fragment<T>::multiply(sums.v[strip][piece], x[strip], y);
        if (next >= 0) Fragment<T>::multiply(sums.v[strip][piece + 1 < S::OWN_PIECES ? piece + 1 : piece], x[strip], y + 2);
      }
    }
  }
}

// The same of floats, exactly: tensor cores would round them.
template <int R, int C, int K, Reading A_READING, Reading B_READING, class A, class B>
DEVICE void multiply(Sums<R, C>& sums, const float* left, const A& a, const float* right, const B& b) {
#pragma unroll 2
  for (int k = 0; k < K; ++k)
    each<R, C>([&](int row, int column, Own own) { sums[own] += left[a(row, k)] * right[b(column, k)]; });
}

struct Sum {
  static DEVICE float none() { return 0.0f; }
  static DEVICE float of(float x, float y) { return x + y; }
};
// Finite: what a mask has left nothing of but -inf is below it, so its exponentials are 0, not NaN.
struct Largest {
  static DEVICE float none() { return -__int_as_float(0x7F7FFFFF); }
  static DEVICE float of(float x, float y) { return larger(x, y); }
};

// As a model has it.
struct LargestOfAll {
  static DEVICE float none() { return -__int_as_float(0x7F800000); }
  static DEVICE float of(float x, float y) { return larger(x, y); }
};

// store(n, sum over k of element(n, k)) for N results of K elements each.
//
// The threads of a result are neighbours. Where a warp is not enough, warps leave what they have in
// `partials`, of N x WARPS floats, and wait for each other.
template <int N, int K> struct Team {
  static constexpr DEVICE int fit(int threads) {
    return threads > 1 && (threads > K || threads * N > THREADS) ? fit(threads / 2) : threads;
  }
  static constexpr int COUNT = fit(THREADS), LANES = COUNT < 32 ? COUNT : 32;
};
template <int N, int K, class How, class Element, class Store>
DEVICE void reduce(float* partials, const Element& element, const Store& store) {
  typedef Team<N, K> T;
  const int own = threadIdx.x % T::COUNT;
  for (int first = 0; first < N; first += THREADS / T::COUNT) {
    const int n = first + threadIdx.x / T::COUNT;
    float sum = How::none();
    if (n < N)
#pragma unroll 8
      for (int pass = 0; pass < (K + T::COUNT - 1) / T::COUNT; ++pass) {
        const int k = pass * T::COUNT + own;
        if (K % T::COUNT == 0 || k < K) sum = How::of(sum, element(n, k));
      }
#pragma unroll
    for (int step = T::LANES / 2; step; step /= 2) sum = How::of(sum, __shfl_xor_sync(0xFFFFFFFF, sum, step));
    if (T::COUNT <= 32) {
      if (own == 0 && n < N) store(n, sum);
    } else if (own % 32 == 0 && n < N) {
      partials[n * WARPS + own / 32] = sum;
    }
  }
  if (T::COUNT > 32) {
    __syncthreads();
    for (int n = threadIdx.x; n < N; n += THREADS) {
      float sum = How::none();
      for (int i = 0; i < T::COUNT / 32; ++i) sum = How::of(sum, partials[n * WARPS + i]);
      store(n, sum);
    }
  }
}

// The same for each row of registers: element(row, column, own).
template <int R, int C, class How, class Element, class Store>
DEVICE void reduce_rows(float* partials, const Element& element, const Store& store) {
  typedef Sums<R, C> S;
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int strip = 0; strip < S::OWN_STRIPS; ++strip)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int top = first_row<R, C>(strip), row = top + lane / 4 + half * 8;
      float sum = How::none();
#pragma unroll
      for (int piece = 0; piece < S::OWN_PIECES; ++piece) {
        const int left = first_column<R, C>(piece);
        if (top < 0 || left < 0) continue;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int column = left + lane % 4 * 2 + i;
          if ((R % 16 == 0 || row < R) && (C % 8 == 0 || column < C))
            sum = How::of(sum, element(row, column, Own{strip, piece, half * 2 + i}));
        }
      }
      sum = How::of(sum, __shfl_xor_sync(0xFFFFFFFF, sum, 1));
      sum = How::of(sum, __shfl_xor_sync(0xFFFFFFFF, sum, 2));
      if (top < 0 || lane % 4 || (R % 16 && row >= R)) continue;
      if (S::SHARE == 1) store(row, sum);
      else partials[row * WARPS + warp_of_block() % S::SHARE] = sum;
    }
  if (S::SHARE > 1) {
    __syncthreads();
    for (int row = threadIdx.x; row < R; row += THREADS) {
      float sum = How::none();
      for (int i = 0; i < S::SHARE; ++i) sum = How::of(sum, partials[row * WARPS + i]);
      store(row, sum);
    }
  }
}

// By how much a running maximum has moved, as a factor: exp(before - now).
DEVICE float fade(float before, float now) { return before == now ? 1.0f : expf(before - now); }

// Copies from device to shared memory that a thread does not wait for: many are on their way at once, and
// none takes a register. What a thread has begun is there, for itself, once it has waited: for all of it, or
// for all but the last N groups; for others after a barrier behind that.
// BYTES are 4, 8 or 16, both addresses multiples of them; where nothing exists zeros are written.
template <int BYTES> DEVICE void begin_copy(void* to, const void* from, bool exists = true) {
  if (BYTES == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
                 "r"(exists ? 16 : 0) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(to)), "l"(from),
                 "n"(BYTES == 16 ? 8 : BYTES), "r"(exists ? BYTES : 0) : "memory");
}
DEVICE void end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> DEVICE void wait_for_groups() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
DEVICE void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

