// Kernels that move elements and compute nothing: they know the elements' size, not their type.
// Where whole runs stay together, callers pass them as larger elements, of up to 16 bytes.
#include "common.cuh"

struct alignas(16) u128 { u64 v[2]; };

// dst and src are strided views of the same sizes, of n elements.
template <class E>
__global__ void strided_copy(E* dst, const E* src, i64 n, Sizes<6> sizes, Sizes<6> dst_strides,
                             Sizes<6> src_strides) {
  for (i64 i = first_index(); i < n; i += index_step())
    dst[offset_of((u32)i, sizes, dst_strides)] = src[offset_of((u32)i, sizes, src_strides)];
}

// dst = condition ? a : b, broadcast: dst is whole, `sizes` are its, strides of repeated axes are 0.
template <class E>
__global__ void choose(E* dst, const u8* condition, const E* a, const E* b, i64 n, Sizes<5> sizes,
                       Sizes<5> condition_strides, Sizes<5> a_strides, Sizes<5> b_strides) {
  for (i64 i = first_index(); i < n; i += index_step()) {
    const bool is_first = condition[offset_of((u32)i, sizes, condition_strides)];
    dst[i] = is_first ? a[offset_of((u32)i, sizes, a_strides)] : b[offset_of((u32)i, sizes, b_strides)];
  }
}

// [batch, rows, columns] to [batch, columns, rows], a tile of 32 x 32 at a time; blocks are 32 x 8.
template <class E> __global__ void transpose(E* dst, const E* src, i64 batch, i64 rows, i64 columns) {
  __shared__ E tile[32][33];
  for (i64 b = blockIdx.z; b < batch; b += gridDim.z) {
    const E* from = src + b * rows * columns;
    E* to = dst + b * rows * columns;
    i64 c = (i64)blockIdx.x * 32 + threadIdx.x, r = (i64)blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
      if (r + k < rows && c < columns) tile[threadIdx.y + k][threadIdx.x] = from[(r + k) * columns + c];
    __syncthreads();
    i64 x = (i64)blockIdx.y * 32 + threadIdx.x, y = (i64)blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
      if (y + k < columns && x < rows) to[(y + k) * rows + x] = tile[threadIdx.x][threadIdx.y + k];
    __syncthreads();
  }
}

// Which of up to 8 parts a column of them, side by side, lies in, and where that part begins.
DEVICE int part_of(u32 column, const Sizes<8>& ends, u32& start) {
  int part = 0;
  start = 0;
#pragma unroll
  for (int k = 0; k < 7; ++k)
    if (column >= (u32)ends.v[k]) {
      part = k + 1;
      start = (u32)ends.v[k];
    }
  return part;
}

// Parts [outer, ..] side by side into dst [outer, width], from column `first` on.
// `ends` are where each part ends, counted from `first`; the last one is `taken`, all together.
template <class E>
__global__ void concat(E* dst, Pointers<8> parts, i64 outer, i64 width, i64 first, i64 taken,
                       Sizes<8> ends) {
  const i64 n = outer * taken;
  for (i64 i = first_index(); i < n; i += index_step()) {
    u32 row = (u32)i / (u32)taken, column = (u32)i - row * (u32)taken, start;
    int part = part_of(column, ends, start);
    u32 length = (u32)ends.v[part] - start;
    dst[row * width + first + column] = ((const E*)parts.v[part])[row * length + column - start];
  }
}

// The inverse of concat: from src [outer, width] into the parts.
template <class E>
__global__ void split(Pointers<8> parts, const E* src, i64 outer, i64 width, i64 first, i64 taken,
                      Sizes<8> ends) {
  const i64 n = outer * taken;
  for (i64 i = first_index(); i < n; i += index_step()) {
    u32 row = (u32)i / (u32)taken, column = (u32)i - row * (u32)taken, start;
    int part = part_of(column, ends, start);
    u32 length = (u32)ends.v[part] - start;
    ((E*)parts.v[part])[row * length + column - start] = src[row * width + first + column];
  }
}

// data [outer, axis, inner] to dst [outer, count, inner]; indices are of 4 or 8 bytes, one below 0
// counts from the end. Indices outside of the axis are the caller's to refuse.
template <class E>
__global__ void gather(E* dst, const E* data, const void* indices, i64 index_bytes, i64 outer, i64 axis,
                       i64 inner, i64 count) {
  const i64 n = outer * count * inner;
  for (i64 i = first_index(); i < n; i += index_step()) {
    const u32 row = (u32)i / (u32)inner, block = row / (u32)count, k = row - block * (u32)count;
    i64 index = index_bytes == 4 ? ((const int*)indices)[k] : ((const i64*)indices)[k];
    if (index < 0) index += axis;
    dst[i] = data[(block * axis + index) * inner + (i - row * inner)];
  }
}

// A border around src: of `value`'s low bytes (mode 0), mirrored (1), or of the edge (2).
template <class E>
__global__ void pad(E* dst, const E* src, i64 mode, u64 value, i64 n, Sizes<6> dst_sizes,
                    Sizes<6> src_sizes, Sizes<6> begins) {
  for (i64 i = first_index(); i < n; i += index_step()) {
    u32 rest = (u32)i, offset = 0, stride = 1;
    bool inside = true;
#pragma unroll
    for (int d = 5; d >= 0; --d) {
      u32 size = (u32)dst_sizes.v[d], quotient = rest / size;
      i64 at = (i64)(rest - quotient * size) - begins.v[d], last = src_sizes.v[d] - 1;
      rest = quotient;
      if (at < 0 || at > last) {
        inside = false;
        if (mode == 1) at = at < 0 ? -at : 2 * last - at;
        if (mode == 2) at = at < 0 ? 0 : last;
      }
      offset += (u32)at * stride;
      stride *= (u32)src_sizes.v[d];
    }
    dst[i] = inside || mode ? src[offset] : (E)value;
  }
}

template <class E> __global__ void fill(E* dst, u64 value, i64 n) {
  for (i64 i = first_index(); i < n; i += index_step()) dst[i] = (E)value;
}

// Element types by number, as relational_tensat/gpu/codes.py has them.
DEVICE bool is_real(i64 type) { return type <= 3; }

DEVICE f64 read_real(const void* src, i64 type, i64 i) {
  switch (type) {
    case 0: return ((const float*)src)[i];
    case 1: return to_float(((const f16*)src)[i]);
    case 2: return to_float(((const bf16*)src)[i]);
    default: return ((const f64*)src)[i];
  }
}

DEVICE i64 read_integer(const void* src, i64 type, i64 i) {
  switch (type) {
    case 4: return ((const i64*)src)[i];
    case 5: return ((const int*)src)[i];
    case 6: return ((const short*)src)[i];
    case 7: return ((const signed char*)src)[i];
    case 8: return ((const u32*)src)[i];
    case 9: return ((const u16*)src)[i];
    default: return ((const u8*)src)[i];  // 10 unsigned, 11 bool
  }
}

DEVICE void write_real(void* dst, i64 type, i64 i, f64 x) {
  switch (type) {
    case 0: ((float*)dst)[i] = (float)x; return;
    case 1: ((f16*)dst)[i] = from_float<f16>((float)x); return;
    case 2: ((bf16*)dst)[i] = from_float<bf16>((float)x); return;
    default: ((f64*)dst)[i] = x;
  }
}

DEVICE void write_integer(void* dst, i64 type, i64 i, i64 x) {
  switch (type) {
    case 4: ((i64*)dst)[i] = x; return;
    case 5: case 8: ((int*)dst)[i] = (int)x; return;
    case 6: case 9: ((short*)dst)[i] = (short)x; return;
    case 11: ((u8*)dst)[i] = x != 0; return;
    default: ((u8*)dst)[i] = (u8)x;
  }
}

// Conversion; floats become integers by dropping the fraction, and bool by comparing with 0.
__global__ void cast(void* dst, const void* src, i64 target, i64 source, i64 n) {
  for (i64 i = first_index(); i < n; i += index_step()) {
    if (is_real(source)) {
      f64 x = read_real(src, source, i);
      if (is_real(target)) write_real(dst, target, i, x);
      else write_integer(dst, target, i, target == 11 ? (i64)(x != 0.0) : (i64)x);
    } else {
      i64 x = read_integer(src, source, i);
      if (is_real(target)) write_real(dst, target, i, (f64)x);
      else write_integer(dst, target, i, x);
    }
  }
}
