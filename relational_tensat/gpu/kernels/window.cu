// Sliding windows: pools, and the convolutions that have one channel per group.
// There are always three spatial dimensions; those that a tensor lacks are of size 1.
#include "common.cuh"

// The three coordinates of element `index` of a tensor of these sizes.
DEVICE void unravel(u32 index, const Sizes<3>& sizes, i64 at[3]) {
  at[2] = index % (u32)sizes.v[2];
  index /= (u32)sizes.v[2];
  at[1] = index % (u32)sizes.v[1];
  at[0] = index / (u32)sizes.v[1];
}

// Largest (kind 0) or mean (kind 1) elements; src is [planes, in], dst [planes, out].
// Padding counts in the mean where `include_pad` is 1, up to `ends` beyond the operand.
template <class T>
__global__ void pool(T* dst, const T* src, i64 kind, i64 act, i64 include_pad, i64 planes, Sizes<3> in,
                     Sizes<3> out, Sizes<3> kernel, Sizes<3> stride, Sizes<3> dilation,
                     Sizes<3> begins, Sizes<3> ends) {
  const i64 area = in.v[0] * in.v[1] * in.v[2], places = out.v[0] * out.v[1] * out.v[2];
  for (i64 i = first_index(); i < planes * places; i += index_step()) {
    i64 at[3], met = 0;
    unravel((u32)(i % places), out, at);
    const T* plane = src + i / places * area;
    float x = kind ? 0.0f : -__int_as_float(0x7f800000);
    for (i64 z = 0; z < kernel.v[0]; ++z) {
      i64 a = at[0] * stride.v[0] - begins.v[0] + z * dilation.v[0];
      for (i64 y = 0; y < kernel.v[1]; ++y) {
        i64 b = at[1] * stride.v[1] - begins.v[1] + y * dilation.v[1];
        for (i64 k = 0; k < kernel.v[2]; ++k) {
          i64 c = at[2] * stride.v[2] - begins.v[2] + k * dilation.v[2];
          bool inside = a >= 0 && a < in.v[0] && b >= 0 && b < in.v[1] && c >= 0 && c < in.v[2];
          if (inside) {
            float e = to_float(plane[(a * in.v[1] + b) * in.v[2] + c]);
            x = kind ? x + e : larger(e, x);
          }
          bool padded = a < in.v[0] + ends.v[0] && b < in.v[1] + ends.v[1] && c < in.v[2] + ends.v[2];
          met += inside || (include_pad && padded);
        }
      }
    }
    dst[i] = from_float<T>(activate(act, kind ? x / (float)met : x));
  }
}

// x [batch, channels, in] with w [filters, 1, kernel] to dst [batch, filters, out]; filters are a
// multiple of channels. An addend (as dst) or bias of address 0 is absent.
template <class T>
__global__ void depthwise(T* dst, const T* x, const T* w, const T* addend, const T* bias, i64 act,
                          i64 batch, i64 channels, i64 filters, Sizes<3> in, Sizes<3> out,
                          Sizes<3> kernel, Sizes<3> stride, Sizes<3> dilation, Sizes<3> begins) {
  const i64 area = in.v[0] * in.v[1] * in.v[2], places = out.v[0] * out.v[1] * out.v[2];
  const i64 taps = kernel.v[0] * kernel.v[1] * kernel.v[2];
  for (i64 i = first_index(); i < batch * filters * places; i += index_step()) {
    i64 at[3];
    unravel((u32)(i % places), out, at);
    const i64 filter = i / places % filters, image = i / places / filters;
    const T* plane = x + (image * channels + filter / (filters / channels)) * area;
    const T* weights = w + filter * taps;
    float sum = bias ? to_float(bias[filter]) : 0.0f;
    if (addend) sum += to_float(addend[i]);
    for (i64 z = 0; z < kernel.v[0]; ++z) {
      i64 a = at[0] * stride.v[0] - begins.v[0] + z * dilation.v[0];
      if (a < 0 || a >= in.v[0]) continue;
      for (i64 y = 0; y < kernel.v[1]; ++y) {
        i64 b = at[1] * stride.v[1] - begins.v[1] + y * dilation.v[1];
        if (b < 0 || b >= in.v[1]) continue;
        for (i64 k = 0; k < kernel.v[2]; ++k) {
          i64 c = at[2] * stride.v[2] - begins.v[2] + k * dilation.v[2];
          if (c < 0 || c >= in.v[2]) continue;
          sum += to_float(plane[(a * in.v[1] + b) * in.v[2] + c]) *
                 to_float(weights[(z * kernel.v[1] + y) * kernel.v[2] + k]);
        }
      }
    }
    dst[i] = from_float<T>(activate(act, sum));
  }
}
