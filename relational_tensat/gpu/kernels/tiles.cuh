// C = A B, a tile of 64 x 64 of C per block, for any way to read A and B and to write C.
//
// A, B and Out are small objects: `a(row, k)` and `b(k, b.column(c))` give an element (0 outside of
// the matrix), `out(row, out.column(c), sum)` takes one; what a column means is worked out once, since
// a thread reads one column of B only. On CUDA cores: 256 threads, 4 x 4 sums each. On tensor cores:
// 4 warps of 32 x 32 sums each, of 16-bit elements, or of floats rounded to tf32.
#pragma once
#include "common.cuh"

constexpr int TILE = 64;

// Hands a block's sums, staged in shared memory, to Out: neighbouring threads write neighbours, and
// there is one copy of the code for a store, with its bias and activation.
template <class Out>
DEVICE void write_tile(const Out& out, const float (&sums)[TILE][TILE + 1], int row, int column) {
  __syncthreads();
  const auto written = out.column(column + threadIdx.x % TILE);
#pragma unroll 2
  for (int r = threadIdx.x / TILE; r < TILE; r += blockDim.x / TILE)
    out(row + r, written, sums[r][threadIdx.x % TILE]);
  __syncthreads();
}

template <class A, class B, class Out>
DEVICE void multiply_simt(const A& a, const B& b, const Out& out, int k) {
  constexpr int DEPTH = 16;
  __shared__ float left[DEPTH][TILE + 4], right[DEPTH][TILE + 4], staged[TILE][TILE + 1];
  const int row = blockIdx.y * TILE, column = blockIdx.x * TILE;
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const auto read = b.column(column + threadIdx.x % TILE);
  float sums[4][4] = {};
  for (int start = 0; start < k; start += DEPTH) {
#pragma unroll 4
    for (int e = threadIdx.x; e < TILE * DEPTH; e += 256) {
      left[e % DEPTH][e / DEPTH] = to_float(a(row + e / DEPTH, start + e % DEPTH));
      right[e / TILE][e % TILE] = to_float(b(start + e / TILE, read));
    }
    __syncthreads();
#pragma unroll 4
    for (int d = 0; d < DEPTH; ++d) {
      float x[4], y[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        x[i] = left[d][ty * 4 + i];
        y[i] = right[d][tx * 4 + i];
      }
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[i][j] += x[i] * y[j];
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) staged[ty * 4 + i][tx * 4 + j] = sums[i][j];
  write_tile(out, staged, row, column);
}

// How an element type enters the tensor cores: so many elements to a register of 32 bits.
template <class T> struct Fragment;
template <> struct Fragment<f16> {
  typedef u16 Element;
  static DEVICE u16 bits(f16 x) { return x.bits; }
  static DEVICE void multiply(float* c, const u32* a, const u32* b) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};
template <> struct Fragment<bf16> {
  typedef u16 Element;
  static DEVICE u16 bits(bf16 x) { return x.bits; }
  static DEVICE void multiply(float* c, const u32* a, const u32* b) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};
template <> struct Fragment<float> {
  typedef u32 Element;
  static DEVICE u32 bits(float x) {
    u32 y;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
    return y;
  }
  static DEVICE void multiply(float* c, const u32* a, const u32* b) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};

// Rows of a tile are 16 words of elements, padded to 20: a warp's reads then meet all 32 banks.
template <class T, class A, class B, class Out>
DEVICE void multiply_mma(const A& a, const B& b, const Out& out, int k) {
  typedef typename Fragment<T>::Element Element;
  constexpr int WORDS = 20, PER_WORD = 4 / sizeof(Element), DEPTH = 16 * PER_WORD;
  __shared__ u32 left[TILE][WORDS], right[TILE][WORDS];
  __shared__ float staged[TILE][TILE + 1];
  Element* left_elements = (Element*)left;
  Element* right_elements = (Element*)right;
  const int row = blockIdx.y * TILE, column = blockIdx.x * TILE;
  const int lane = threadIdx.x % 32, group = lane / 4, word = lane % 4;
  const int warp_row = threadIdx.x / 64 * 32, warp_column = threadIdx.x / 32 % 2 * 32;
  const auto read = b.column(column + threadIdx.x % TILE);
  float sums[2][4][4] = {};
  for (int start = 0; start < k; start += DEPTH) {
#pragma unroll 4
    for (int e = threadIdx.x; e < TILE * DEPTH; e += 128) {
      left_elements[e / DEPTH * WORDS * PER_WORD + e % DEPTH] =
          Fragment<T>::bits(a(row + e / DEPTH, start + e % DEPTH));
      right_elements[e % TILE * WORDS * PER_WORD + e / TILE] =
          Fragment<T>::bits(b(start + e / TILE, read));
    }
    __syncthreads();
#pragma unroll
    for (int first = 0; first < 16; first += 8) {
      u32 x[2][4], y[4][2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int r = 0; r < 4; ++r)
          x[i][r] = left[warp_row + i * 16 + group + r % 2 * 8][first + word + r / 2 * 4];
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int r = 0; r < 2; ++r)
          y[j][r] = right[warp_column + j * 8 + group][first + word + r * 4];
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) Fragment<T>::multiply(sums[i][j], x[i], y[j]);
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int r = 0; r < 4; ++r)
        staged[warp_row + i * 16 + group + r / 2 * 8][warp_column + j * 8 + word * 2 + r % 2] =
            sums[i][j][r];
  write_tile(out, staged, row, column);
}
