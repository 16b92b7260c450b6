// Convolutions as matrix products: per group, weights [filters, channels * taps] times the elements
// that the windows meet, which are read where they are.
// There are always three spatial dimensions; those that a tensor lacks are of size 1.
#include "tiles.cuh"

struct Shape {
  int batch, groups, channels, filters;  // channels and filters of one group
  int in[3], out[3], kernel[3], stride[3], dilation[3], begins[3];
  DEVICE Shape(i64 batch_, i64 groups_, i64 channels_, i64 filters_, const Sizes<3>& in_,
               const Sizes<3>& out_, const Sizes<3>& kernel_, const Sizes<3>& stride_,
               const Sizes<3>& dilation_, const Sizes<3>& begins_)
      : batch(batch_), groups(groups_), channels(channels_), filters(filters_) {
#pragma unroll
    for (int d = 0; d < 3; ++d) {
      in[d] = in_.v[d], out[d] = out_.v[d], kernel[d] = kernel_.v[d];
      stride[d] = stride_.v[d], dilation[d] = dilation_.v[d], begins[d] = begins_.v[d];
    }
  }
  DEVICE int area() const { return in[0] * in[1] * in[2]; }
  DEVICE int places() const { return out[0] * out[1] * out[2]; }
  DEVICE int depth() const { return channels * kernel[0] * kernel[1] * kernel[2]; }
  DEVICE int columns() const { return batch * places(); }
};

template <class T> struct Weights {
  const T* data;
  int rows, columns;
  DEVICE T operator()(int r, int c) const {
    return r < rows && c < columns ? data[r * columns + c] : from_float<T>(0.0f);
  }
};

// The matrix that is never stored: element (channel and tap, image and place).
template <class T> struct Windows {
  const T* data;
  const Shape& s;
  int group, depth;
  // A window: its first plane, negative outside of the matrix, and where it begins.
  struct Column { int plane, at[3]; };
  DEVICE Column column(int c) const {
    if (c >= s.columns()) return {-1, {0, 0, 0}};
    const u32 places = s.places(), image = (u32)c / places, place = (u32)c % places;
    const u32 row = place / (u32)s.out[2], slab = row / (u32)s.out[1];
    return {(int)(image * s.groups + group) * s.channels,
            {(int)slab * s.stride[0] - s.begins[0],
             (int)(row - slab * s.out[1]) * s.stride[1] - s.begins[1],
             (int)(place - row * s.out[2]) * s.stride[2] - s.begins[2]}};
  }
  DEVICE T operator()(int k, const Column& window) const {
    if (k >= depth || window.plane < 0) return from_float<T>(0.0f);
    const u32 line = (u32)k / (u32)s.kernel[2], slab = line / (u32)s.kernel[1];
    const u32 channel = slab / (u32)s.kernel[0];
    const int c = window.at[2] + (int)(k - line * s.kernel[2]) * s.dilation[2];
    const int b = window.at[1] + (int)(line - slab * s.kernel[1]) * s.dilation[1];
    const int a = window.at[0] + (int)(slab - channel * s.kernel[0]) * s.dilation[0];
    // As unsigned numbers, those below 0 are large.
    if ((u32)a >= (u32)s.in[0] || (u32)b >= (u32)s.in[1] || (u32)c >= (u32)s.in[2])
      return from_float<T>(0.0f);
    return data[(window.plane + (int)channel) * s.area() + (a * s.in[1] + b) * s.in[2] + c];
  }
};

template <class T> struct Planes {
  T* data;
  const T *addend, *bias;
  const Shape& s;
  int group;
  i64 act;
  // Where a column's first filter of this group is written; negative outside of the matrix.
  DEVICE int column(int c) const {
    if (c >= s.columns()) return -1;
    const int places = s.places(), image = (u32)c / (u32)places;
    return (image * s.groups + group) * s.filters * places + c - image * places;
  }
  DEVICE void operator()(int r, int start, float sum) const {
    if (r >= s.filters || start < 0) return;
    const int place = start + r * s.places();
    if (addend) sum += to_float(addend[place]);
    if (bias) sum += to_float(bias[group * s.filters + r]);
    data[place] = from_float<T>(activate(act, sum));
  }
};

// dst [batch, groups * filters, out] of x [batch, groups * channels, in] and w [groups * filters,
// channels, kernel]; a group per block in z. An addend (as dst) or bias of address 0 is absent.
template <class T>
__global__ void __launch_bounds__(256)
conv_simt(T* dst, const T* x, const T* w, const T* addend, const T* bias, i64 act, i64 batch, i64 groups,
          i64 channels, i64 filters, Sizes<3> in, Sizes<3> out, Sizes<3> kernel, Sizes<3> stride, Sizes<3> dilation,
          Sizes<3> begins) {
  const Shape s(batch, groups, channels, filters, in, out, kernel, stride, dilation, begins);
  const int depth = s.depth();
  for (int g = blockIdx.z; g < s.groups; g += gridDim.z)
    multiply_simt(Weights<T>{w + g * s.filters * depth, s.filters, depth},
                  Windows<T>{x, s, g, depth}, Planes<T>{dst, addend, bias, s, g, act}, depth);
}

template <class T>
__global__ void __launch_bounds__(128)
conv_mma(T* dst, const T* x, const T* w, const T* addend, const T* bias, i64 act, i64 batch, i64 groups,
         i64 channels, i64 filters, Sizes<3> in, Sizes<3> out, Sizes<3> kernel, Sizes<3> stride, Sizes<3> dilation,
         Sizes<3> begins) {
  const Shape s(batch, groups, channels, filters, in, out, kernel, stride, dilation, begins);
  const int depth = s.depth();
  for (int g = blockIdx.z; g < s.groups; g += gridDim.z)
    multiply_mma<T>(Weights<T>{w + g * s.filters * depth, s.filters, depth},
                    Windows<T>{x, s, g, depth}, Planes<T>{dst, addend, bias, s, g, act}, depth);
}
