// Fourier transforms by Stockham's passes: each is a transform of R numbers in each thread, and leaves them where the next pass
// finds its own side by side, so that nothing has to be put in order.

template <class T>
struct alignas(2 * sizeof(T)) ji_complex {
  T re, im;
};

__device__ __forceinline__ float ji_fft_fused(float a, float b, float c) { return fmaf(a, b, c); }
__device__ __forceinline__ double ji_fft_fused(double a, double b, double c) { return fma(a, b, c); }
__device__ __forceinline__ void ji_turn(float x, float* sine, float* cosine) { sincospif(x, sine, cosine); }
__device__ __forceinline__ void ji_turn(double x, double* sine, double* cosine) { sincospi(x, sine, cosine); }

template <class T> __device__ __forceinline__ ji_complex<T> ji_plus(ji_complex<T> x, ji_complex<T> y) {
  return {x.re + y.re, x.im + y.im};
}
template <class T> __device__ __forceinline__ ji_complex<T> ji_minus(ji_complex<T> x, ji_complex<T> y) {
  return {x.re - y.re, x.im - y.im};
}
template <class T> __device__ __forceinline__ ji_complex<T> ji_times(ji_complex<T> x, ji_complex<T> y) {
  return {ji_fft_fused(x.re, y.re, -(x.im * y.im)), ji_fft_fused(x.re, y.im, x.im * y.re)};
}
// x times i or -i, as `sign` says.
template <class T> __device__ __forceinline__ ji_complex<T> ji_quarter(ji_complex<T> x, int sign) {
  return sign > 0 ? ji_complex<T>{-x.im, x.re} : ji_complex<T>{x.im, -x.re};
}
// A call, since there are several of them in a step: written out, they hold the registers of four.
template <class T> __device__ __noinline__ ji_complex<T> ji_turned(T x) {
  ji_complex<T> z;
  ji_turn(x, &z.im, &z.re);
  return z;
}
// exp(sign * 2 pi i * part / whole)
template <class T> __device__ __forceinline__ ji_complex<T> ji_root_of_one(long long part, long long whole, int sign) {
  if (2 * part > whole) part -= whole;
  return ji_turned((T)(2 * part * sign) / (T)whole);
}

template <class T> __device__ __forceinline__ void ji_dft2(ji_complex<T>& x, ji_complex<T>& y) {
  const ji_complex<T> sum = ji_plus(x, y);
  y = ji_minus(x, y), x = sum;
}
// Of x[0], x[S], x[2 * S], x[3 * S]; in their order.
template <int S, class T> __device__ __forceinline__ void ji_dft4(ji_complex<T>* x, int sign) {
  ji_dft2(x[0], x[2 * S]);
  ji_dft2(x[S], x[3 * S]);
  x[3 * S] = ji_quarter(x[3 * S], sign);
  ji_dft2(x[0], x[S]);
  ji_dft2(x[2 * S], x[3 * S]);
  const ji_complex<T> kept = x[S];
  x[S] = x[2 * S], x[2 * S] = kept;
}
template <class T> __device__ __forceinline__ void ji_dft8(ji_complex<T>* x, int sign) {
  const T half = (T)0.70710678118654752440;
  ji_dft4<2>(x, sign);
  ji_dft4<2>(x + 1, sign);
  x[3] = ji_times(x[3], {half, sign * half});
  x[5] = ji_quarter(x[5], sign);
  x[7] = ji_times(x[7], {-half, sign * half});
  ji_complex<T> y[8];
#pragma unroll
  for (int k = 0; k < 4; k++) y[k] = ji_plus(x[2 * k], x[2 * k + 1]), y[k + 4] = ji_minus(x[2 * k], x[2 * k + 1]);
#pragma unroll
  for (int k = 0; k < 8; k++) x[k] = y[k];
}

// Of a prime number: by pairs of roots that are conjugates, so that real and imaginary parts share their products.
template <class T, int R, class Store>
__device__ __forceinline__ void ji_fft_prime(ji_complex<T>* x, int sign, Store store) {
  constexpr int H = (R - 1) / 2;
#pragma unroll
  for (int r = 1; r <= H; r++) ji_dft2(x[r], x[R - r]);
  ji_complex<T> sum = x[0];
#pragma unroll
  for (int r = 1; r <= H; r++) sum = ji_plus(sum, x[r]);
  store(0, sum);
#pragma unroll
  for (int k = 1; k <= H; k++) {
    ji_complex<T> even = x[0], odd = {0, 0};
#pragma unroll
    for (int r = 1; r <= H; r++) {
      const T c = ji_cosine<R>(r * k % R), s = ji_sine<R>(r * k % R);
      even = {ji_fft_fused(c, x[r].re, even.re), ji_fft_fused(c, x[r].im, even.im)};
      odd = {ji_fft_fused(s, x[R - r].re, odd.re), ji_fft_fused(s, x[R - r].im, odd.im)};
    }
    odd = ji_quarter(odd, sign);
    store(k, ji_plus(even, odd));
    store(R - k, ji_minus(even, odd));
  }
}

// What one thread does in a pass.
//   j       which of the n / R transforms of this pass
//   stride  n / R: from one of its numbers to the next
//   run     the product of the radices of earlier passes
//   load    a number by its position; store likewise
template <class T, int R, class I, class Load, class Store>
__device__ __forceinline__ void ji_fft_step(I j, I stride, I run, int sign, Load load, Store store) {
  ji_complex<T> x[R];
  const I place = j % run, first = (j - place) * R + place;
#pragma unroll
  for (int r = 0; r < R; r++) x[r] = load(j + r * stride);
  if (run > 1) {
    // Roots of one by powers of two; others are products of these, of three at most.
    ji_complex<T> roots[R];
#pragma unroll
    for (int r = 1; r < R; r++) {
      const bool is_power = (r & (r - 1)) == 0;
      roots[r] = is_power ? ji_root_of_one<T>((long long)place * r, (long long)run * R, sign)
                          : ji_times(roots[r & (r - 1)], roots[r & -r]);
      x[r] = ji_times(x[r], roots[r]);
    }
  }
  if constexpr (R == 2) ji_dft2(x[0], x[1]);
  if constexpr (R == 4) ji_dft4<1>(x, sign);
  if constexpr (R == 8) ji_dft8(x, sign);
  if constexpr (R == 1 || R == 2 || R == 4 || R == 8) {
#pragma unroll
    for (int r = 0; r < R; r++) store(first + r * run, x[r]);
  } else {
    ji_fft_prime<T, R>(x, sign, [=](int k, ji_complex<T> z) { store(first + k * run, z); });
  }
}
