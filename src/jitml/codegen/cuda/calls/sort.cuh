// Merge sort of rows: stable, NaN last. A block sorts tiles of 2048 elements in shared memory; longer rows are merged in passes
// through global memory, where each block makes one tile of the result and finds by bisection what of both runs belongs there
// (merge path). `places` go with the keys where a sort tells where its elements came from (CARRIES).

struct ji_f16_bits {
  unsigned short bits;
};

template <class K> __device__ __forceinline__ bool ji_before(K x, K y) { return x < y; }
__device__ __forceinline__ bool ji_before(float x, float y) { return x < y || (y != y && x == x); }
__device__ __forceinline__ bool ji_before(double x, double y) { return x < y || (y != y && x == x); }

// A number that orders as the float of 16 bits does: both zeros are 0, and every NaN is the largest.
__device__ __forceinline__ int ji_f16_order(ji_f16_bits x) {
  const int size = x.bits & 0x7fff;
  return size > 0x7c00 ? 0x8000 : x.bits & 0x8000 ? -size : size;
}
__device__ __forceinline__ bool ji_before(ji_f16_bits x, ji_f16_bits y) { return ji_f16_order(x) < ji_f16_order(y); }

#define JI_SORT_EACH 8
#define JI_SORT_TILE 2048

// How many of the first `count` elements of the merger of two sorted runs are from the first one.
template <class K, class I>
__device__ __forceinline__ I ji_merge_split(const K* a, I a_count, const K* b, I b_count, I count) {
  I low = count > b_count ? count - b_count : 0, high = count < a_count ? count : a_count;
#pragma unroll 1
  while (low < high) {
    const I middle = low + (high - low) / 2;
    if (ji_before(b[count - 1 - middle], a[middle])) high = middle;
    else low = middle + 1;
  }
  return low;
}

// What one thread holds: neighbours in the order of the tile.
template <class K, bool CARRIES>
struct ji_sort_share {
  K keys[JI_SORT_EACH];
  unsigned int places[CARRIES ? JI_SORT_EACH : 1];

  __device__ __forceinline__ void read(const K* tile, const unsigned int* tile_places, int first, int end) {
#pragma unroll
    for (int u = 0; u < JI_SORT_EACH; u++)
      if (first + u < end) {
        keys[u] = tile[first + u];
        if (CARRIES) places[u] = tile_places[first + u];
      }
  }

  __device__ __forceinline__ void write(K* tile, unsigned int* tile_places, int first, int end) const {
#pragma unroll
    for (int u = 0; u < JI_SORT_EACH; u++)
      if (first + u < end) {
        tile[first + u] = keys[u];
        if (CARRIES) tile_places[first + u] = places[u];
      }
  }

  // Sort the first `count`: neighbours change places if the second one belongs before the first.
  __device__ __forceinline__ void sort(int count) {
#pragma unroll 1
    for (int round = 0; round < JI_SORT_EACH; round += 2)
#pragma unroll
      for (int k = 0; k < JI_SORT_EACH - 1; k++) {
        const int u = k < JI_SORT_EACH / 2 ? 2 * k : 2 * k - JI_SORT_EACH + 1;  // even ones, then odd ones
        if (u + 1 < count && ji_before(keys[u + 1], keys[u])) {
          const K key = keys[u];
          keys[u] = keys[u + 1];
          keys[u + 1] = key;
          if (CARRIES) {
            const unsigned int place = places[u];
            places[u] = places[u + 1];
            places[u + 1] = place;
          }
        }
      }
  }

  // Take what comes next of the runs from a to a_end and from b to b_end.
  __device__ __forceinline__ void merge(const K* tile, const unsigned int* tile_places, int a, int a_end, int b, int b_end) {
#pragma unroll
    for (int u = 0; u < JI_SORT_EACH; u++)
      if (a < a_end || b < b_end) {
        const bool is_second = b < b_end && (a >= a_end || ji_before(tile[b], tile[a]));
        const int at = is_second ? b++ : a++;
        keys[u] = tile[at];
        if (CARRIES) places[u] = tile_places[at];
      }
  }
};

template <class I> __device__ __forceinline__ int ji_sort_within(I count, int most) {
  return count < 0 ? 0 : count > most ? most : (int)count;
}

// Sort pieces of rows, of SPAN elements each, of which a block takes as many as make a tile. `get(at)` gives a key and
// `put(at, key, place)` takes an element; `at` is its place in memory, rows being `stride` apart. I holds all places.
template <class K, int SPAN, bool CARRIES, class I, class Get, class Put>
__device__ __forceinline__ void ji_sort_pieces(K* tile, unsigned int* places, I rows, I n, I stride, Get get, Put put) {
  const I pieces = (n + SPAN - 1) / SPAN, total = rows * pieces;
#pragma unroll 1
  for (I t = blockIdx.x; t * (JI_SORT_TILE / SPAN) < total; t += gridDim.x) {
    // Of the element at `e` of the tile: its row and its place there, which is none if it is beyond `n`.
    const auto each = [=](int e, auto work) {
      const I piece = t * (JI_SORT_TILE / SPAN) + e / SPAN, row = piece / pieces, within = (piece - row * pieces) * SPAN + e % SPAN;
      if (piece < total && within < n) work(row * stride + within, within);
    };
#pragma unroll 4
    for (int e = threadIdx.x; e < JI_SORT_TILE; e += 256)
      each(e, [=](I at, I within) {
        tile[e] = get(at);
        if (CARRIES) places[e] = (unsigned int)within;
      });
    __syncthreads();
    const int mine = threadIdx.x * JI_SORT_EACH, first = mine / SPAN * SPAN, me = mine % SPAN;
    const I piece = t * (JI_SORT_TILE / SPAN) + mine / SPAN;
    const int count = piece < total ? ji_sort_within<I>(n - piece % pieces * SPAN, SPAN) : 0;
    ji_sort_share<K, CARRIES> share;
    share.read(tile, places, mine, first + count);
    share.sort(count - me);
#pragma unroll 1
    for (int width = JI_SORT_EACH; width < SPAN; width *= 2) {
      __syncthreads();
      share.write(tile, places, mine, first + count);
      __syncthreads();
      const int start = me / (2 * width) * (2 * width);
      const int a_count = ji_sort_within(count - start, width), b_count = ji_sort_within(count - start - width, width);
      const int skipped = me - start < a_count + b_count ? me - start : a_count + b_count;
      const K* a = tile + first + start;
      const int split = ji_merge_split(a, a_count, a + width, b_count, skipped);
      const int at = first + start;
      share.merge(tile, places, at + split, at + a_count, at + width + skipped - split, at + width + b_count);
    }
    __syncthreads();
    share.write(tile, places, mine, first + count);
    __syncthreads();
#pragma unroll 4
    for (int e = threadIdx.x; e < JI_SORT_TILE; e += 256)
      each(e, [=](I at, I) { put(at, tile[e], CARRIES ? places[e] : 0); });
    __syncthreads();
  }
}

// Merge sorted runs of `width` elements in pairs: each block makes tiles of the result.
template <class K, bool CARRIES, class I, class Put>
__device__ __forceinline__ void ji_sort_merge(K* tile, unsigned int* places, I* splits, const K* keys, const unsigned int* from,
                                              I rows, I n, I stride, I width, Put put) {
  const I across = (n + JI_SORT_TILE - 1) / JI_SORT_TILE;
#pragma unroll 1
  for (I t = blockIdx.x; t < rows * across; t += gridDim.x) {
    const I begin = t % across * JI_SORT_TILE, start = begin / (2 * width) * (2 * width), row = t / across * stride;
    const I a_count = n - start < width ? n - start : width;
    const I b_count = n - start - a_count < width ? n - start - a_count : width;
    const I skipped = begin - start, rest = a_count + b_count - skipped;
    const int count = rest < JI_SORT_TILE ? (int)rest : JI_SORT_TILE;
    const K *a = keys + row + start, *b = a + width;
    if (threadIdx.x % 32 == 0 && threadIdx.x < 64)
      splits[threadIdx.x / 32] = ji_merge_split<K, I>(a, a_count, b, b_count, skipped + (threadIdx.x ? count : 0));
    __syncthreads();
    const I a_first = splits[0], b_first = skipped - a_first;
    const int a_here = (int)(splits[1] - a_first);
#pragma unroll 4
    for (int e = threadIdx.x; e < count; e += 256) {
      const I at = e < a_here ? a_first + e : width + b_first + (e - a_here);
      tile[e] = a[at];
      if (CARRIES) places[e] = from[row + start + at];
    }
    __syncthreads();
    const int me = threadIdx.x * JI_SORT_EACH < count ? threadIdx.x * JI_SORT_EACH : count;
    const int split = ji_merge_split((const K*)tile, a_here, (const K*)tile + a_here, count - a_here, me);
    ji_sort_share<K, CARRIES> share;
    share.merge(tile, places, split, a_here, a_here + me - split, count);
    __syncthreads();
    share.write(tile, places, me, count);
    __syncthreads();
#pragma unroll 4
    for (int e = threadIdx.x; e < count; e += 256) put(row + begin + e, tile[e], CARRIES ? places[e] : 0);
    __syncthreads();
  }
}
