// Functions of one or two elements.
#include "common.cuh"

// The operators of one operand by number (relational_tensat/gpu/codes.py). One call per element keeps
// the loops small: what they wait for is memory.
CALLED float bend_one(i64 op, float x, float low, float high) {
  switch (op) {
    // functions of one element
    case 11: return gelu_tanh(x);
    case 12: return smaller(larger(x, low), high);
    default: return x * low;
  }
}

// dst = op(src): dst is whole, src is walked through by sizes and strides. `low` and `high` are clip's bounds,
// `low` also smul's factor.
template <class T>
__global__ void unary(T* dst, const T* src, i64 op, i64 n, f64 low, f64 high, Sizes<5> sizes,
                      Sizes<5> src_strides) {
  const float least = (float)low, most = (float)high;
  i64 done = 0;
  if (sizes.v[4] != n || src_strides.v[4] != 1) {
    for (i64 i = first_index(); i < n; i += index_step())
      dst[i] = from_float<T>(bend_one(op, to_float(src[offset_of((u32)i, sizes, src_strides)]), least, most));
    return;
  }
  if (is_aligned(dst) && is_aligned(src)) {
    const i64 packs = n / Pack<T>::count;
    for (i64 i = first_index(); i < packs; i += index_step()) {
      Pack<T> x = ((const Pack<T>*)src)[i];
#pragma unroll
      for (int k = 0; k < Pack<T>::count; ++k)
        x.v[k] = from_float<T>(bend_one(op, to_float(x.v[k]), least, most));
      ((Pack<T>*)dst)[i] = x;
    }
    done = packs * Pack<T>::count;
  }
  for (i64 i = done + first_index(); i < n; i += index_step())
    dst[i] = from_float<T>(bend_one(op, to_float(src[i]), least, most));
}

// The operators of two operands by number, with a fused activation.
CALLED float join(i64 op, i64 act, float x, float y) {
  switch (op) {
    case 0: return activate(act, x + y);
    case 1: return activate(act, x - y);
    case 2: return activate(act, x * y);
    case 3: return activate(act, x / y);
    default: return activate(act, powf(x, y));
  }
}

// Both operands whole, or one a single number (step 0).
template <class T>
DEVICE void join_flat(T* dst, const T* a, const T* b, i64 op, i64 act, i64 n, i64 a_step, i64 b_step) {
  i64 done = 0;
  const float left = to_float(*a), right = to_float(*b);
  if (is_aligned(dst) && (a_step == 0 || is_aligned(a)) && (b_step == 0 || is_aligned(b))) {
    const i64 packs = n / Pack<T>::count;
    for (i64 i = first_index(); i < packs; i += index_step()) {
      Pack<T> x = {}, y = {};
      if (a_step) x = ((const Pack<T>*)a)[i];
      if (b_step) y = ((const Pack<T>*)b)[i];
#pragma unroll
      for (int k = 0; k < Pack<T>::count; ++k)
        x.v[k] = from_float<T>(
            join(op, act, a_step ? to_float(x.v[k]) : left, b_step ? to_float(y.v[k]) : right));
      ((Pack<T>*)dst)[i] = x;
    }
    done = packs * Pack<T>::count;
  }
  for (i64 i = done + first_index(); i < n; i += index_step())
    dst[i] = from_float<T>(join(op, act, to_float(a[i * a_step]), to_float(b[i * b_step])));
}

// dst = act(a op b), broadcast: dst is whole, `sizes` are its, strides of repeated axes are 0.
template <class T>
__global__ void binary(T* dst, const T* a, const T* b, i64 op, i64 act, i64 n, Sizes<5> sizes,
                       Sizes<5> a_strides, Sizes<5> b_strides) {
  if (sizes.v[4] == n) return join_flat(dst, a, b, op, act, n, a_strides.v[4], b_strides.v[4]);
  for (i64 i = first_index(); i < n; i += index_step()) {
    float x = to_float(a[offset_of((u32)i, sizes, a_strides)]);
    float y = to_float(b[offset_of((u32)i, sizes, b_strides)]);
    dst[i] = from_float<T>(join(op, act, x, y));
  }
}

// dst[i] = whether src[i] is NaN.
template <class T> __global__ void is_nan(u8* dst, const T* src, i64 n) {
  for (i64 i = first_index(); i < n; i += index_step()) {
    const float x = to_float(src[i]);
    dst[i] = x != x;
  }
}

// dst = whether a and b compare so, broadcast; NaN compares to nothing.
template <class T>
__global__ void compare(u8* dst, const T* a, const T* b, i64 op, i64 n, Sizes<5> sizes,
                        Sizes<5> a_strides, Sizes<5> b_strides) {
  for (i64 i = first_index(); i < n; i += index_step()) {
    const float x = to_float(a[offset_of((u32)i, sizes, a_strides)]);
    const float y = to_float(b[offset_of((u32)i, sizes, b_strides)]);
    dst[i] = op == 0 ? x < y : op == 1 ? x <= y : x == y;
  }
}

// dst = whether both conditions hold, one does, or the first does not; broadcast.
__global__ void decide(u8* dst, const u8* a, const u8* b, i64 op, i64 n, Sizes<5> sizes,
                       Sizes<5> a_strides, Sizes<5> b_strides) {
  for (i64 i = first_index(); i < n; i += index_step()) {
    const bool x = a[offset_of((u32)i, sizes, a_strides)];
    const bool y = b[offset_of((u32)i, sizes, b_strides)];
    dst[i] = op == 0 ? x && y : op == 1 ? x || y : !x;
  }
}

// scale (x - mean) / sqrt(var + epsilon) + bias, per channel; x is [.., channels, inner].
template <class T>
__global__ void batch_norm(T* dst, const T* x, const T* scale, const T* bias, const T* mean,
                           const T* var, f64 epsilon, i64 channels, i64 inner, i64 n) {
  for (i64 i = first_index(); i < n; i += index_step()) {
    u32 c = (u32)i / (u32)inner % (u32)channels;
    float factor = to_float(scale[c]) / sqrtf(to_float(var[c]) + (float)epsilon);
    dst[i] = from_float<T>((to_float(x[i]) - to_float(mean[c])) * factor + to_float(bias[c]));
  }
}
