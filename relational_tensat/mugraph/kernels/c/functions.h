// Functions of one element without branches, so that compilers make vectors of them.
#include <math.h>
#include <string.h>

static inline long fewer(long a, long b) { return a < b ? a : b; }

// e^x: 2^n times a polynomial on [-ln 2 / 2, ln 2 / 2] (Cephes); relative error below 2e-7.
static inline float exp_of(float x) {
  const float low = x < -87.3f ? -87.3f : x, bounded = low > 88.72f ? 88.72f : low;
  const float n = rintf(bounded * 1.44269504f);
  const float r = bounded - n * 0.693359375f + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const int half = (int)n / 2;  // 2^n in two steps: 2^128 is no float
  const int first = (half + 127) << 23, second = ((int)n - half + 127) << 23;
  float one, other;
  memcpy(&one, &first, 4);
  memcpy(&other, &second, 4);
  const float value = p * one * other;
  const float large = x > 88.72f ? INFINITY : value;
  return x != x ? x : x < -87.3f ? 0.0f : large;
}

// erf: a rational function on [-4, 4], as in Eigen; absolute error below 5e-7.
static inline float erf_of(float x) {
  const float low = x < -4.0f ? -4.0f : x, y = low > 4.0f ? 4.0f : low, s = y * y;
  float p = -2.72614225801306e-10f;
  p = p * s + 2.77068142495902e-08f;
  p = p * s + -2.10102402082508e-06f;
  p = p * s + -5.69250639462346e-05f;
  p = p * s + -7.34990630326855e-04f;
  p = p * s + -2.95459980854025e-03f;
  p = p * s + -1.60960333262415e-02f;
  float q = -1.45660718464996e-05f;
  q = q * s + -2.13374055278905e-04f;
  q = q * s + -1.68282697438203e-03f;
  q = q * s + -7.37332916720468e-03f;
  q = q * s + -1.42647390514189e-02f;
  return y * p / q;
}

static inline float relu(float x) { return x < 0.0f ? 0.0f : x; }
static inline float square(float x) { return x * x; }
static inline float sigmoid(float x) { return 1.0f / (1.0f + exp_of(-x)); }
static inline float silu(float x) { return x / (1.0f + exp_of(-x)); }
static inline float tanh_of(float x) { return 2.0f / (1.0f + exp_of(-2.0f * x)) - 1.0f; }
static inline float gelu(float x) { return 0.5f * x * (1.0f + erf_of(x * 0.70710678f)); }
static inline float larger(float x, float y) { return x > y || x != x ? x : y; }
static inline float fade(float before, float now) { return before == now ? 1.0f : exp_of(before - now); }
