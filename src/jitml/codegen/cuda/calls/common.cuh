// What the templates of library calls share.

__device__ __forceinline__ long long ji_clamped(long long x, long long low, long long high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}
