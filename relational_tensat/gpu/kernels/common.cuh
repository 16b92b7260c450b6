// What all kernels share: element types, fused activations, grid-stride loops.
//
// Nothing is included: NVRTC alone compiles these files, whatever headers a machine has.
// Every parameter of a kernel is 8 bytes or an array of such, so that Python packs them without
// padding. Arithmetic is in float; 16-bit elements are converted on their way in and out.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
typedef double f64;

struct f16 { u16 bits; };
struct bf16 { u16 bits; };

// Sizes or strides of up to N dimensions, the outermost first.
template <int N> struct Sizes { i64 v[N]; };
// Addresses of up to N buffers.
template <int N> struct Pointers { void* v[N]; };

#define DEVICE __device__ __forceinline__

DEVICE float to_float(float x) { return x; }
DEVICE float to_float(f16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
DEVICE float to_float(bf16 x) { return __uint_as_float((u32)x.bits << 16); }

template <class T> DEVICE T from_float(float x);
template <> DEVICE float from_float<float>(float x) { return x; }
template <> DEVICE f16 from_float<f16>(float x) {
  f16 y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}
template <> DEVICE bf16 from_float<bf16>(float x) {
  bf16 y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}

// A NaN stays one, as in NumPy's maximum and minimum.
DEVICE float larger(float x, float y) { return x > y || x != x ? x : y; }
DEVICE float smaller(float x, float y) { return x < y || x != x ? x : y; }

// Functions of many instructions are calls: inlined into every unrolled loop and store they made
// the cubins several times as large.
#define CALLED static __device__ __noinline__
// sigmoid
CALLED float gelu_tanh(float x) {
  return 0.5f * x * (1.0f + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
}
CALLED float bend(i64 act, float x) {
  return act == 2 ? sigmoid(x) : act == 4 ? gelu_tanh(x) : tanhf(x);
}

// The activations that kernels have fused, numbered as relational_tensat/gpu/codes.py has them.
DEVICE float activate(i64 act, float x) {
  if (act == 0) return x;
  if (act == 1) return x < 0.0f ? 0.0f : x;
  return bend(act, x);
}

// 16 bytes of elements, moved at once.
template <class T> struct alignas(16) Pack {
  static constexpr int count = 16 / sizeof(T);
  T v[count];
};
DEVICE bool is_aligned(const void* pointer) { return ((u64)pointer & 15) == 0; }

DEVICE i64 first_index() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }
DEVICE i64 index_step() { return (i64)gridDim.x * blockDim.x; }

// The offset of element `index` of a tensor of these sizes; tensors have under 2^31 elements.
template <int N> DEVICE u32 offset_of(u32 index, const Sizes<N>& sizes, const Sizes<N>& strides) {
  u32 offset = 0;
#pragma unroll
  for (int d = N - 1; d > 0; --d) {
    u32 size = (u32)sizes.v[d];
    if (size == 1) continue;
    u32 quotient = index / size;
    offset += (index - quotient * size) * (u32)strides.v[d];
    index = quotient;
  }
  return offset + index * (u32)strides.v[0];
}
