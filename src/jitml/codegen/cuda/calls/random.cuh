// Numbers of NumPy's generators.

// PCG64: a linear congruence of 128 bits, of which each thread computes the states that it needs.

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

__device__ __forceinline__ double ji_uniform(unsigned long long bits) { return (bits >> 11) * (1.0 / 9007199254740992.0); }
__device__ __forceinline__ float ji_uniform(unsigned int bits) { return (bits >> 8) * (1.0f / 16777216.0f); }

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
__device__ __forceinline__ void ji_draw(const ji_pcg_order& order, unsigned long long count, Put put) {
  unsigned long long i = (unsigned long long)blockIdx.x * 256 + threadIdx.x;
  ji_pcg_step step = order.step;
  ji_128 state = step(order.state);
  for (unsigned long long rest = i; rest; rest >>= 1, step = step.twice())
    if (rest & 1) state = step(state);
  for (; i < count; i += (unsigned long long)gridDim.x * 256, state = order.stride(state)) put(i, ji_pcg_bits(state));
}

// Philox 4x64-10: four numbers of a count and a key.
struct ji_philox_order {
  unsigned long long draws, count, key[2], counter[4], buffer[4], place, has_half, half;
};

__device__ __forceinline__ void ji_philox(const ji_philox_order& order, unsigned long long block, unsigned long long numbers[4]) {
  unsigned long long c[4], k = order.key[0], m = order.key[1];
#pragma unroll
  for (int n = 0; n < 4; n += 1) {
    c[n] = order.counter[n] + block;
    block = c[n] < block;  // what is carried
  }
#pragma unroll
  for (int round = 0; round < 10; round += 1) {
    const unsigned long long high = __umul64hi(0xD2E7470EE14C6C93ull, c[0]), low = 0xD2E7470EE14C6C93ull * c[0];
    const unsigned long long other = __umul64hi(0xCA5A826395121157ull, c[2]), lower = 0xCA5A826395121157ull * c[2];
    c[0] = other ^ c[1] ^ k, c[1] = lower, c[2] = high ^ c[3] ^ m, c[3] = low;
    k += 0x9E3779B97F4A7C15ull, m += 0xBB67AE8584CAA73Bull;
  }
#pragma unroll
  for (int n = 0; n < 4; n += 1) numbers[n] = c[n];
}

// put(i, bits) for each i below count. Those that wait in the buffer come first.
template <class Put>
__device__ __forceinline__ void ji_draw(const ji_philox_order& order, unsigned long long count, Put put) {
  const unsigned long long left = 4 - order.place, first = (unsigned long long)blockIdx.x * 256 + threadIdx.x;
  if (first < left && first < count) put(first, order.buffer[order.place + first]);
  for (unsigned long long block = first; left + 4 * block < count; block += (unsigned long long)gridDim.x * 256) {
    unsigned long long numbers[4];
    ji_philox(order, block + 1, numbers);
#pragma unroll
    for (int n = 0; n < 4; n += 1)
      if (left + 4 * block + n < count) put(left + 4 * block + n, numbers[n]);
  }
}

template <class Order> __device__ __forceinline__ void ji_fill_by(double* __restrict__ numbers, const Order& order) {
  ji_draw(order, order.count, [=](unsigned long long i, unsigned long long bits) { numbers[i] = ji_uniform(bits); });
}

// Numbers of 32 bits: the low half of one of 64 bits, then its high half.
template <class Order> __device__ __forceinline__ void ji_fill_by(float* __restrict__ numbers, const Order& order) {
  const unsigned long long first = order.has_half, count = order.count;
  if (first && blockIdx.x == 0 && threadIdx.x == 0) numbers[0] = ji_uniform((unsigned int)order.half);
  ji_draw(order, (count - first + 1) / 2, [=](unsigned long long i, unsigned long long bits) {
    numbers[first + 2 * i] = ji_uniform((unsigned int)bits);
    if (first + 2 * i + 1 < count) numbers[first + 2 * i + 1] = ji_uniform((unsigned int)(bits >> 32));
  });
}

// What the host has ordered: nothing, or numbers of one of these.
template <class T> __device__ __forceinline__ void ji_fill(T* __restrict__ numbers, const unsigned long long* order) {
  if (*order == 1) ji_fill_by(numbers, *(const ji_pcg_order*)order);
  if (*order == 2) ji_fill_by(numbers, *(const ji_philox_order*)order);
}
