// Copies. `dst` and `src` give the element's place in memory; 256 threads a block.

// y[dst(i)] = x[src(i)] for all i below count, with four loads in flight: a block takes 1024 neighbours at a time.
template <class T, class I, class Dst, class Src>
__device__ __forceinline__ void ji_copy(T* __restrict__ y, const T* __restrict__ x, I count, Dst dst, Src src) {
  for (I first = (I)blockIdx.x * 1024; first < count; first += (I)gridDim.x * 1024) {
    const I i = first + threadIdx.x;
    if (first + 1024 <= count) {
      T loaded[4];
#pragma unroll
      for (int k = 0; k < 4; k++) loaded[k] = x[src(i + k * 256)];
#pragma unroll
      for (int k = 0; k < 4; k++) y[dst(i + k * 256)] = loaded[k];
    } else {
      for (I k = i; k < count; k += 256) y[dst(k)] = x[src(k)];
    }
  }
}

// y[dst(i)] = value for all i below count.
template <class T, class I, class Dst>
__device__ __forceinline__ void ji_fill(T* __restrict__ y, T value, I count, Dst dst) {
  const I step = (I)gridDim.x * 256;
  for (I i = (I)blockIdx.x * 256 + threadIdx.x; i < count; i += step) y[dst(i)] = value;
}

// y[dst(b, i, j)] = x[src(b, i, j)], where neighbours along i are close in y, and along j in x: tiles go through shared memory,
// whose rows are one element longer so that a column of it lies in as many banks as it has elements.
template <class T, int TILE, class I, class Dst, class Src>
__device__ __forceinline__ void ji_copy_turned(T (*tile)[TILE + 1], T* __restrict__ y, const T* __restrict__ x, I batches, I ni,
                                               I nj, Dst dst, Src src) {
  constexpr int ROWS = 256 / TILE;
  const int lane = threadIdx.x % TILE, row = threadIdx.x / TILE;
  const I across = (nj + TILE - 1) / TILE, down = (ni + TILE - 1) / TILE, tiles = batches * across * down;
  for (I t = blockIdx.x; t < tiles; t += gridDim.x) {
    const I b = t / across / down, i0 = t / across % down * TILE, j0 = t % across * TILE;
#pragma unroll
    for (int k = 0; k < TILE; k += ROWS) {
      const I i = i0 + row + k, j = j0 + lane;
      if (i < ni && j < nj) tile[row + k][lane] = x[src(b, i, j)];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TILE; k += ROWS) {
      const I i = i0 + lane, j = j0 + row + k;
      if (i < ni && j < nj) y[dst(b, i, j)] = tile[lane][row + k];
    }
    __syncthreads();
  }
}
