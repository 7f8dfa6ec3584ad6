// Numbers of NumPy's PCG64: a linear congruence of 128 bits, of which each thread computes the states that it needs.

struct ji_128 {
  unsigned long long high, low;
};

__device__ __forceinline__ ji_128 ji_multiply(ji_128 x, ji_128 y) {
  return {__umul64hi(x.low, y.low) + x.high * y.low + x.low * y.high, x.low * y.low};
}

__device__ __forceinline__ ji_128 ji_add(ji_128 x, ji_128 y) {
  const unsigned long long low = x.low + y.low;
  return {x.high + y.high + (low < x.low), low};
}

// One step of the generator, or many of them: state * factor + summand.
struct ji_pcg_step {
  ji_128 factor, summand;

  __device__ __forceinline__ ji_128 operator()(ji_128 state) const { return ji_add(ji_multiply(state, factor), summand); }

  // This step taken twice.
  __device__ __forceinline__ ji_pcg_step twice() const { return {ji_multiply(factor, factor), (*this)(summand)}; }
};

// The 64 bits that a state stands for (XSL-RR).
__device__ __forceinline__ unsigned long long ji_pcg_bits(ji_128 state) {
  const unsigned long long x = state.high ^ state.low;
  const int turn = (int)(state.high >> 58);
  return x >> turn | x << (64 - turn & 63);
}

__device__ __forceinline__ double ji_pcg_uniform(unsigned long long bits) { return (bits >> 11) * (1.0 / 9007199254740992.0); }
__device__ __forceinline__ float ji_pcg_uniform(unsigned int bits) { return (bits >> 8) * (1.0f / 16777216.0f); }

// What the host tells: whether the device is to draw at all, how many numbers, the state, one step and a whole grid's, and the
// half of a number of 64 bits that is left from before.
struct ji_pcg_order {
  unsigned long long draws, count;
  ji_128 state;
  ji_pcg_step step, stride;
  unsigned long long has_half, half;
};

// put(i, bits) for each i below count: the 64 bits of the i-th number to come.
template <class Put>
__device__ __forceinline__ void ji_pcg_draw(const ji_pcg_order& order, unsigned long long count, Put put) {
  unsigned long long i = (unsigned long long)blockIdx.x * 256 + threadIdx.x;
  ji_pcg_step step = order.step;
  ji_128 state = step(order.state);
  for (unsigned long long rest = i; rest; rest >>= 1, step = step.twice())
    if (rest & 1) state = step(state);
  for (; i < count; i += (unsigned long long)gridDim.x * 256, state = order.stride(state)) put(i, ji_pcg_bits(state));
}

__device__ __forceinline__ void ji_pcg_fill(double* __restrict__ numbers, const ji_pcg_order& order) {
  ji_pcg_draw(order, order.count, [=](unsigned long long i, unsigned long long bits) { numbers[i] = ji_pcg_uniform(bits); });
}

// Numbers of 32 bits: the low half of one of 64 bits, then its high half.
__device__ __forceinline__ void ji_pcg_fill(float* __restrict__ numbers, const ji_pcg_order& order) {
  const unsigned long long first = order.has_half, count = order.count;
  if (first && blockIdx.x == 0 && threadIdx.x == 0) numbers[0] = ji_pcg_uniform((unsigned int)order.half);
  ji_pcg_draw(order, (count - first + 1) / 2, [=](unsigned long long i, unsigned long long bits) {
    numbers[first + 2 * i] = ji_pcg_uniform((unsigned int)bits);
    if (first + 2 * i + 1 < count) numbers[first + 2 * i + 1] = ji_pcg_uniform((unsigned int)(bits >> 32));
  });
}
