// Kernels that reduce: sums and their like, softmax, and the norms over the last axes.
// A block takes a row at a time; its threads are a whole number of warps.
#include "common.cuh"

// What reductions do, by number (relational_tensat/gpu/codes.py): sum, mean, max, min, prod.
enum { SUM = 0, MEAN = 1, MAXIMUM = 2, MINIMUM = 3, PRODUCT = 4 };

DEVICE float neutral(i64 op) {
  const float infinity = __int_as_float(0x7f800000);
  return op == MAXIMUM ? -infinity : op == MINIMUM ? infinity : op == PRODUCT ? 1.0f : 0.0f;
}
DEVICE float join(i64 op, float x, float y) {
  if (op == MAXIMUM) return larger(x, y);
  if (op == MINIMUM) return smaller(x, y);
  return op == PRODUCT ? x * y : x + y;
}

// Every thread's number joined over the block; all threads get the result.
CALLED float join_block(i64 op, float x) {
  __shared__ float warps[32];
  __shared__ float total;
  for (int step = 16; step; step >>= 1) x = join(op, x, __shfl_xor_sync(0xffffffffu, x, step));
  __syncthreads();  // the last call's total has been read
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = x;
  __syncthreads();
  if (threadIdx.x < 32) {
    x = threadIdx.x < blockDim.x / 32 ? warps[threadIdx.x] : neutral(op);
    for (int step = 16; step; step >>= 1) x = join(op, x, __shfl_xor_sync(0xffffffffu, x, step));
    if (threadIdx.x == 0) total = x;
  }
  __syncthreads();
  return total;
}

// src [rows, width] to dst [rows].
template <class T> __global__ void reduce_rows(T* dst, const T* src, i64 op, i64 rows, i64 width) {
  for (i64 row = blockIdx.x; row < rows; row += gridDim.x) {
    float x = neutral(op);
    for (i64 i = threadIdx.x; i < width; i += blockDim.x) x = join(op, x, to_float(src[row * width + i]));
    x = join_block(op, x);
    if (threadIdx.x == 0) dst[row] = from_float<T>(op == MEAN ? x / (float)width : x);
  }
}

// src [outer, width, inner] to dst [outer, inner], a thread per element.
template <class T>
__global__ void reduce_columns(T* dst, const T* src, i64 op, i64 outer, i64 width, i64 inner) {
  for (i64 i = first_index(); i < outer * inner; i += index_step()) {
    const u32 row = (u32)i / (u32)inner;
    const T* from = src + row * width * inner + (i - row * inner);
    float x = neutral(op);
    for (i64 k = 0; k < width; ++k) x = join(op, x, to_float(from[k * inner]));
    dst[i] = from_float<T>(op == MEAN ? x / (float)width : x);
  }
}

// exp(x) over its sum along the middle axis of [outer, width, inner].
template <class T> __global__ void softmax(T* dst, const T* src, i64 outer, i64 width, i64 inner) {
  for (i64 row = blockIdx.x; row < outer * inner; row += gridDim.x) {
    const u32 block = (u32)row / (u32)inner;
    const i64 start = block * width * inner + (row - block * inner);
    float most = neutral(MAXIMUM), sum = 0.0f;
    for (i64 i = threadIdx.x; i < width; i += blockDim.x)
      most = larger(most, to_float(src[start + i * inner]));
    most = join_block(MAXIMUM, most);
    for (i64 i = threadIdx.x; i < width; i += blockDim.x)
      sum += expf(to_float(src[start + i * inner]) - most);
    sum = join_block(SUM, sum);
    for (i64 i = threadIdx.x; i < width; i += blockDim.x)
      dst[start + i * inner] = from_float<T>(expf(to_float(src[start + i * inner]) - most) / sum);
  }
}

// Each row of src + skip [rows, width], centred or not, over its root mean square; scale and bias are [width].
template <class T>
DEVICE void normalize(T* dst, const T* src, const T* skip, const T* scale, const T* bias, float epsilon,
                      i64 rows, i64 width, bool centred) {
  for (i64 row = blockIdx.x; row < rows; row += gridDim.x) {
    const T *left = src + row * width, *right = skip + row * width;
    auto x = [&](i64 i) { return skip ? to_float(left[i]) + to_float(right[i]) : to_float(left[i]); };
    float mean = 0.0f, square = 0.0f;
    if (centred) {
      for (i64 i = threadIdx.x; i < width; i += blockDim.x) mean += x(i);
      mean = join_block(SUM, mean) / (float)width;
    }
    for (i64 i = threadIdx.x; i < width; i += blockDim.x) {
      float centre = x(i) - mean;
      square += centre * centre;
    }
    const float root = sqrtf(join_block(SUM, square) / (float)width + epsilon);
    for (i64 i = threadIdx.x; i < width; i += blockDim.x) {
      float y = to_float(scale[i]) * ((x(i) - mean) / root);
      dst[row * width + i] = from_float<T>(bias ? y + to_float(bias[i]) : y);
    }
  }
}

// A skip or bias of address 0 is absent.
template <class T>
__global__ void layer_norm(T* dst, const T* src, const T* skip, const T* scale, const T* bias, f64 epsilon,
                           i64 rows, i64 width) {
  normalize(dst, src, skip, scale, bias, (float)epsilon, rows, width, true);
}

template <class T>
__global__ void rms_norm(T* dst, const T* src, const T* skip, const T* scale, f64 epsilon, i64 rows,
                         i64 width) {
  normalize(dst, src, skip, scale, (const T*)nullptr, (float)epsilon, rows, width, false);
}
