// Matrix products: act(alpha A B + addend + bias) for A [m, k], B [k, n] with rows of their own pitch,
// batches broadcast.
#include "tiles.cuh"

template <class T> struct Matrix {
  const T* data;
  int rows, columns, row_step, column_step;
  DEVICE Matrix(const T* data_, i64 rows_, i64 columns_, bool is_transposed, i64 pitch)
      : data(data_), rows(rows_), columns(columns_), row_step(is_transposed ? 1 : pitch),
        column_step(is_transposed ? pitch : 1) {}
  DEVICE int column(int c) const { return c; }
  DEVICE T operator()(int r, int c) const {
    return r < rows && c < columns ? data[r * row_step + c * column_step] : from_float<T>(0.0f);
  }
};

template <class T> struct Result {
  T* data;
  const T *addend, *bias;
  int rows, columns, bias_row, bias_column;
  float alpha;
  i64 act;
  DEVICE int column(int c) const { return c; }
  DEVICE void operator()(int r, int c, float sum) const {
    if (r >= rows || c >= columns) return;
    sum *= alpha;
    if (addend) sum += to_float(addend[r * columns + c]);
    if (bias) sum += to_float(bias[r * bias_row + c * bias_column]);
    data[r * columns + c] = from_float<T>(activate(act, sum));
  }
};

// The operands of one product of a batch.
template <class T> struct Operands {
  Matrix<T> a, b;
  Result<T> c;
};

template <class T>
DEVICE Operands<T> operands_of(i64 product, T* c, const T* a, const T* b, const T* addend, const T* bias, f64 alpha,
                               i64 act, i64 m, i64 n, i64 k, const Sizes<3>& batches, const Sizes<4>& a_strides,
                               const Sizes<4>& b_strides, const Sizes<5>& bias_strides, i64 transposes_a,
                               i64 transposes_b) {
  const Sizes<3> a_batch = {a_strides.v[0], a_strides.v[1], a_strides.v[2]};
  const Sizes<3> b_batch = {b_strides.v[0], b_strides.v[1], b_strides.v[2]};
  const Sizes<3> bias_batch = {bias_strides.v[0], bias_strides.v[1], bias_strides.v[2]};
  const u32 index = (u32)product;
  if (addend) addend += product * m * n;
  if (bias) bias += offset_of(index, batches, bias_batch);
  return {{a + offset_of(index, batches, a_batch), m, k, transposes_a != 0, a_strides.v[3]},
          {b + offset_of(index, batches, b_batch), k, n, transposes_b != 0, b_strides.v[3]},
          {c + product * m * n, addend, bias, (int)m, (int)n, (int)bias_strides.v[3], (int)bias_strides.v[4],
           (float)alpha, act}};
}

// `batches` are the sizes of three batch axes, the strides what a step along them adds; of factors, their
// pitch follows, of the bias, strides of rows and columns. An addend or bias of address 0 is absent.
template <class T>
__global__ void __launch_bounds__(256)
gemm_simt(T* c, const T* a, const T* b, const T* addend, const T* bias, f64 alpha, i64 act, i64 m, i64 n,
          i64 k, Sizes<3> batches, Sizes<4> a_strides, Sizes<4> b_strides, Sizes<5> bias_strides,
          i64 transposes_a, i64 transposes_b) {
  const i64 count = batches.v[0] * batches.v[1] * batches.v[2];
  for (i64 p = blockIdx.z; p < count; p += gridDim.z) {
    Operands<T> each = operands_of(p, c, a, b, addend, bias, alpha, act, m, n, k, batches, a_strides,
                                   b_strides, bias_strides, transposes_a, transposes_b);
    multiply_simt(each.a, each.b, each.c, (int)k);
  }
}

template <class T>
__global__ void __launch_bounds__(128)
gemm_mma(T* c, const T* a, const T* b, const T* addend, const T* bias, f64 alpha, i64 act, i64 m, i64 n,
         i64 k, Sizes<3> batches, Sizes<4> a_strides, Sizes<4> b_strides, Sizes<5> bias_strides,
         i64 transposes_a, i64 transposes_b) {
  const i64 count = batches.v[0] * batches.v[1] * batches.v[2];
  for (i64 p = blockIdx.z; p < count; p += gridDim.z) {
    Operands<T> each = operands_of(p, c, a, b, addend, bias, alpha, act, m, n, k, batches, a_strides,
                                   b_strides, bias_strides, transposes_a, transposes_b);
    multiply_mma<T>(each.a, each.b, each.c, (int)k);
  }
}
