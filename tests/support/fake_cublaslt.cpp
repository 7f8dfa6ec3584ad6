// cuBLASLt as far as products need it, on the host's memory: attributes are kept as they are given, and read as the header says.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>

namespace {
struct Object {
  std::map<int, int64_t> values;
  int64_t at(int attribute, int64_t otherwise) const {
    auto found = values.find(attribute);
    return found == values.end() ? otherwise : found->second;
  }
};
struct Heuristic {
  uint64_t algorithm[8];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};
enum { OK = 0, INVALID = 7, ROWS = 102, COLUMNS = 103, LEADING = 104, TYPE = 100, COMPUTE = 101 };
constexpr uint64_t MARK = 0x5eed;

int set(Object* object, int attribute, const void* value, size_t size) {
  int64_t wide = 0;
  if (size == 4) {
    int32_t narrow;
    std::memcpy(&narrow, value, 4);
    wide = narrow;
  } else if (size == 8) {
    std::memcpy(&wide, value, 8);
  } else {
    return INVALID;
  }
  object->values[attribute] = wide;
  return OK;
}

double rounded(double x, int64_t compute) {  // to 11 bits, ties away from zero; to 8 bits, ties to even
  if (compute != 77 && compute != 75) return x;
  float narrow = float(x);
  uint32_t bits;
  std::memcpy(&bits, &narrow, 4);
  bits = compute == 77 ? (bits + 0x1000) & ~0x1fffu : (bits + 0x7fff + (bits >> 16 & 1)) & ~0xffffu;
  std::memcpy(&narrow, &bits, 4);
  return narrow;
}

// What is done to an element of row i. The header does not say what relu makes of nan: here it loses it.
double finished(const Object* d, double x, int64_t i, int type);

template <class T>
int multiply(const Object* d, double alpha, const T* a, const Object* A, const T* b, const Object* B, double beta, T* c, const Object* C) {
  const bool turns_a = d->at(3, 0), turns_b = d->at(4, 0);
  const int64_t m = C->at(ROWS, 0), n = C->at(COLUMNS, 0), k = A->at(turns_a ? ROWS : COLUMNS, 0);
  if (A->at(turns_a ? COLUMNS : ROWS, 0) != m || B->at(turns_b ? ROWS : COLUMNS, 0) != n) return INVALID;
  if (B->at(turns_b ? COLUMNS : ROWS, 0) != k) return INVALID;
  for (const Object* x : {A, B, C})
    if (x->at(LEADING, 0) < x->at(ROWS, 0) || x->at(5, 1) != C->at(5, 1)) return INVALID;
  for (int64_t s = 0; s < C->at(5, 1); s++)
    for (int64_t j = 0; j < n; j++)
      for (int64_t i = 0; i < m; i++) {
        double sum = 0;
        for (int64_t p = 0; p < k; p++) {
          const int64_t x = turns_a ? p + i * A->at(LEADING, 0) : i + p * A->at(LEADING, 0);
          const int64_t y = turns_b ? j + p * B->at(LEADING, 0) : p + j * B->at(LEADING, 0);
          const double left = a[s * A->at(6, 0) + x], right = b[s * B->at(6, 0) + y];
          sum += rounded(left, d->at(COMPUTE, 0)) * rounded(right, d->at(COMPUTE, 0));
        }
        T& z = c[s * C->at(6, 0) + i + j * C->at(LEADING, 0)];
        z = T(finished(d, alpha * sum + (beta != 0 ? beta * z : 0), i, C->at(TYPE, 0)));
      }
  return OK;
}

double finished(const Object* d, double x, int64_t i, int type) {
  const int64_t epilogue = d->at(7, 1), at = d->at(8, 0);
  if (epilogue & 4) x += type == 0 ? ((const float*)at)[i] : type == 1 ? ((const double*)at)[i] : (double)((const _Float16*)at)[i];
  if (epilogue & 2) x = x > 0 ? x : 0;
  if (epilogue & 32) x = 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  return x;
}
}  // namespace

extern "C" {
int cublasLtCreate(void** handle) { return *handle = new Object, OK; }
int cublasLtMatmulDescCreate(Object** made, int compute, int scale) {
  *made = new Object;
  (*made)->values[COMPUTE] = compute, (*made)->values[TYPE] = scale;
  return ((compute == 68 || compute == 75 || compute == 77) && scale == 0) || (compute == 70 && scale == 1) ? OK : INVALID;
}
int cublasLtMatmulDescSetAttribute(Object* d, int attribute, const void* value, size_t size) {
  if (size != (attribute == 8 ? 8 : 4)) return INVALID;
  if (attribute == 7 && *(const int*)value & ~(2 | 4 | 32)) return INVALID;
  return set(d, attribute, value, size);
}
int cublasLtMatrixLayoutCreate(Object** made, int type, uint64_t rows, uint64_t columns, int64_t leading) {
  *made = new Object;
  (*made)->values = {{TYPE, type}, {ROWS, (int64_t)rows}, {COLUMNS, (int64_t)columns}, {LEADING, leading}};
  return OK;
}
int cublasLtMatrixLayoutSetAttribute(Object* x, int attribute, const void* value, size_t size) {
  if (size != (attribute == 5 ? 4 : 8)) return INVALID;
  return set(x, attribute, value, size);
}
int cublasLtMatmulPreferenceCreate(Object** made) { return *made = new Object, OK; }
int cublasLtMatmulPreferenceSetAttribute(Object* p, int attribute, const void* value, size_t size) {
  if (size != (attribute == 1 ? 8 : 4)) return INVALID;
  return set(p, attribute, value, size);
}
int cublasLtMatmulPreferenceDestroy(Object* p) { return delete p, OK; }
int cublasLtMatmulAlgoGetHeuristic(void*, Object*, Object*, Object*, Object* c, Object* d, Object* p, int wanted, Heuristic* found,
                                   int* count) {
  if (wanted != 1 || c != d || p->at(1, 0) != 32 << 20) return INVALID;
  *found = {{MARK, (uint64_t)p->at(8, 0)}, 1 << 20, OK, 1.0f, {}};
  return *count = 1, OK;
}
int cublasLtMatmul(void*, Object* d, const void* alpha, const void* a, Object* A, const void* b, Object* B, const void* beta,
                   const void* c, Object* C, void* z, Object* Z, const uint64_t* algorithm, void* workspace, size_t size, void* stream) {
  if (algorithm[0] != MARK || c != z || C != Z || !workspace || size != 32 << 20 || stream != (void*)0x57) return INVALID;
  for (const void* at : {a, b, c})
    if ((uint64_t)at % algorithm[1]) return INVALID;
  const int64_t epilogue = d->at(7, 1), type = C->at(TYPE, 0);
  if (A->at(TYPE, 0) != type || B->at(TYPE, 0) != type || (type == 1) != (d->at(TYPE, 0) == 1)) return INVALID;
  if ((epilogue & 4) && (!d->at(8, 0) || d->at(8, 0) % (type == 0 ? 4 : type == 1 ? 8 : 2))) return INVALID;
  const double scale = type == 1 ? *(const double*)alpha : *(const float*)alpha, more = type == 1 ? *(const double*)beta : *(const float*)beta;
  if (type == 0) return multiply(d, scale, (const float*)a, A, (const float*)b, B, more, (float*)z, C);
  if (type == 2) return multiply(d, scale, (const _Float16*)a, A, (const _Float16*)b, B, more, (_Float16*)z, C);
  return multiply(d, scale, (const double*)a, A, (const double*)b, B, more, (double*)z, C);
}
}
