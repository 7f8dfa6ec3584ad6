// cuSOLVER as far as factorizations need it, on the host's memory, by LAPACK: arguments are read as the headers say, and what
// NVIDIA's documentation forbids is refused. Signs of vectors are not LAPACK's: each second one is turned.
#include <complex>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace {
using F = float;
using D = double;
using C = std::complex<float>;
using Z = std::complex<double>;
enum { OK = 0, NOT_INITIALIZED = 1, INVALID = 3 };
constexpr size_t DEVICE = 4096, HOST = 512;
constexpr int ELEMENTS = 33;
int parameters, jacobi;
int failing = 0;     // what iterations tell of matrices, if not 0
double wrong = 0.0;  // what is added to eigenvalues
std::map<std::string, void*> lapack;

template <class T> struct Parts { using type = T; static constexpr bool is_complex = false; };
template <class T> struct Parts<std::complex<T>> { using type = T; static constexpr bool is_complex = true; };
template <class T> using Real = typename Parts<T>::type;
template <class T> T conjugate(T x) { if constexpr (Parts<T>::is_complex) return std::conj(x); else return x; }
template <class T> std::string letter() {
  return Parts<T>::is_complex ? (sizeof(Real<T>) == 4 ? "c" : "z") : (sizeof(T) == 4 ? "s" : "d");
}
template <class T> constexpr int code() { return (sizeof(Real<T>) == 8) + 4 * Parts<T>::is_complex; }
template <class Function> Function* of(const std::string& name) { return (Function*)lapack.at(name); }

struct Handle { void* stream = nullptr; };
bool is_good(Handle* h, const void* p) { return h && h->stream == (void*)0x57 && p == &parameters; }
// A workspace is as large as has been told, and what is in it is gone.
bool is_space(void* device, size_t bytes, void* host, size_t more) {
  if (!device || bytes != DEVICE || !host || more != HOST) return false;
  std::memset(device, 0xa5, bytes), std::memset(host, 0xa5, more);
  return true;
}
template <class T> bool is_work(T* work, int count) {
  if (!work || count != ELEMENTS || (uint64_t)work % 256) return false;
  std::memset((void*)work, 0xa5, count * sizeof(T));
  return true;
}
int tell(size_t* device, size_t* host) { return *device = DEVICE, *host = HOST, OK; }

// f<T>(...) for the type of a code.
template <class Work> int by_type(int type, Work work) {
  if (type == 0) return work(F());
  if (type == 1) return work(D());
  if (type == 4) return work(C());
  return type == 5 ? work(Z()) : (int)INVALID;
}

template <class T> int hermitian(int mode, int half, int n, T* a, int lda, Real<T>* w, int* info) {
  char job = mode ? 'V' : 'N', uplo = half ? 'U' : 'L';
  int size = 64 * n + 64;
  std::vector<T> work(size);
  std::vector<Real<T>> more(3 * n + 1);
  if constexpr (Parts<T>::is_complex)
    of<void(char*, char*, int*, T*, int*, Real<T>*, T*, int*, Real<T>*, int*)>(letter<T>() + "heev")(&job, &uplo, &n, a, &lda, w, work.data(), &size, more.data(), info);
  else
    of<void(char*, char*, int*, T*, int*, T*, T*, int*, int*)>(letter<T>() + "syev")(&job, &uplo, &n, a, &lda, w, work.data(), &size, info);
  if (failing) *info = failing;
  w[0] += wrong;
  for (int j = 1; mode && j < n; j += 2)
    for (int i = 0; i < n; i++) a[i + j * lda] = -a[i + j * lda];
  return OK;
}

template <class T> int singular(char job, int m, int n, T* a, int lda, Real<T>* s, T* u, int ldu, T* vt, int ldvt, int* info) {
  int size = 64 * (m + n) + 64;
  std::vector<T> work(size);
  std::vector<Real<T>> more(5 * n + 1);
  if constexpr (Parts<T>::is_complex)
    of<void(char*, char*, int*, int*, T*, int*, Real<T>*, T*, int*, T*, int*, T*, int*, Real<T>*, int*)>(letter<T>() + "gesvd")(
        &job, &job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work.data(), &size, more.data(), info);
  else
    of<void(char*, char*, int*, int*, T*, int*, T*, T*, int*, T*, int*, T*, int*, int*)>(letter<T>() + "gesvd")(
        &job, &job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work.data(), &size, info);
  if (failing) *info = failing;
  for (int k = 1; job != 'N' && k < n; k += 2) {
    for (int i = 0; i < m; i++) u[i + k * ldu] = -u[i + k * ldu];
    for (int j = 0; j < n; j++) vt[k + j * ldvt] = -vt[k + j * ldvt];
  }
  return OK;
}

template <class T> int jacobi_stack(Handle* h, int mode, int m, int n, T* a, int lda, Real<T>* s, T* u, int ldu, T* v, int ldv, T* work,
                                    int count, int* info, void* how, int stack) {
  if (!is_good(h, &parameters) || how != &jacobi || m > 32 || n > 32 || lda < m || ldu < m || ldv < n || !u || !v) return INVALID;
  if (!is_work(work, count)) return INVALID;
  for (int b = 0; b < stack; b++) {
    std::vector<T> vt(n * n);
    if (m < n) return INVALID;  // not forbidden, but never asked for
    singular(mode ? 'A' : 'N', m, n, a + (int64_t)b * lda * n, lda, s + (int64_t)b * n, u + (int64_t)b * ldu * m, ldu, vt.data(), n, info + b);
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) v[(int64_t)b * ldv * n + i + j * ldv] = conjugate(vt[j + i * n]);
  }
  return OK;
}

template <class T> int generate(Handle* h, int m, int n, int k, T* a, int lda, const T* tau, T* work, int count, int* info) {
  if (!is_good(h, &parameters) || !(m >= n && n >= k && k > 0) || lda < m || !is_work(work, count)) return INVALID;
  int size = 64 * n;
  std::vector<T> own(size);
  of<void(int*, int*, int*, T*, int*, T*, T*, int*, int*)>(letter<T>() + (Parts<T>::is_complex ? "ungqr" : "orgqr"))(
      &m, &n, &k, a, &lda, (T*)tau, own.data(), &size, info);
  return OK;
}
}  // namespace

extern "C" {
void fake_results(int info, double more) { failing = info, wrong = more; }
void fake_lapack(const char* name, void* function) { lapack[name] = function; }

int cusolverDnCreate(Handle** made) { return *made = new Handle, OK; }
int cusolverDnCreateParams(void** made) { return *made = &parameters, OK; }
int cusolverDnCreateGesvdjInfo(void** made) { return *made = &jacobi, OK; }
int cusolverDnSetStream(Handle* h, void* stream) { return h->stream = stream, OK; }

int cusolverDnXsyevd_bufferSize(Handle* h, void* p, int mode, int half, int64_t n, int type, const void* a, int64_t lda, int type_w,
                                const void* w, int compute, size_t* device, size_t* host) {
  if (!h || p != &parameters || lda < n || type != compute || type_w != type % 4) return INVALID;
  return tell(device, host);
}
int cusolverDnXsyevd(Handle* h, void* p, int mode, int half, int64_t n, int type, void* a, int64_t lda, int type_w, void* w, int compute,
                     void* device, size_t bytes, void* host, size_t more, int* info) {
  if (!is_good(h, p) || !is_space(device, bytes, host, more) || lda < n || type != compute || type_w != type % 4) return INVALID;
  return by_type(type, [&](auto x) { return hermitian(mode, half, n, (decltype(x)*)a, lda, (Real<decltype(x)>*)w, info); });
}
int cusolverDnXsyevBatched_bufferSize(Handle* h, void* p, int mode, int half, int64_t n, int type, const void* a, int64_t lda, int type_w,
                                      const void* w, int compute, size_t* device, size_t* host, int64_t stack) {
  if (!h || p != &parameters || lda < n || type != compute || type_w != type % 4 || stack * n * lda > 1 << 30) return INVALID;
  return tell(device, host);
}
int cusolverDnXsyevBatched(Handle* h, void* p, int mode, int half, int64_t n, int type, void* a, int64_t lda, int type_w, void* w,
                           int compute, void* device, size_t bytes, void* host, size_t more, int* info, int64_t stack) {
  if (!is_good(h, p) || !is_space(device, bytes, host, more) || lda < n || type != compute || type_w != type % 4) return INVALID;
  return by_type(type, [&](auto x) {
    using T = decltype(x);
    for (int64_t b = 0; b < stack; b++) hermitian(mode, half, n, (T*)a + b * lda * n, lda, (Real<T>*)w + b * n, info + b);
    return (int)OK;
  });
}

int cusolverDnXgesvd_bufferSize(Handle* h, void* p, signed char left, signed char right, int64_t m, int64_t n, int type, const void* a,
                                int64_t lda, int type_s, const void* s, int type_u, const void* u, int64_t ldu, int type_v, const void* v,
                                int64_t ldv, int compute, size_t* device, size_t* host) {
  if (!h || p != &parameters || m < n || lda < m || ldu < m || ldv < n || type_s != type % 4 || type_u != type || type_v != type) return INVALID;
  return compute == type ? tell(device, host) : (int)INVALID;
}
int cusolverDnXgesvd(Handle* h, void* p, signed char left, signed char right, int64_t m, int64_t n, int type, void* a, int64_t lda, int type_s,
                     void* s, int type_u, void* u, int64_t ldu, int type_v, void* v, int64_t ldv, int compute, void* device, size_t bytes,
                     void* host, size_t more, int* info) {
  if (!is_good(h, p) || !is_space(device, bytes, host, more) || m < n || lda < m || ldu < m || ldv < n || left != right) return INVALID;
  if (type_s != type % 4 || type_u != type || type_v != type || compute != type || !std::strchr("ASN", left)) return INVALID;
  return by_type(type, [&](auto x) {
    using T = decltype(x);
    return singular(left, m, n, (T*)a, lda, (Real<T>*)s, (T*)u, ldu, (T*)v, ldv, info);
  });
}

int cusolverDnXgeqrf_bufferSize(Handle* h, void* p, int64_t m, int64_t n, int type, const void* a, int64_t lda, int type_tau, const void* tau,
                                int compute, size_t* device, size_t* host) {
  return h && p == &parameters && lda >= m && type == type_tau && type == compute ? tell(device, host) : (int)INVALID;
}
int cusolverDnXgeqrf(Handle* h, void* p, int64_t m, int64_t n, int type, void* a, int64_t lda, int type_tau, void* tau, int compute,
                     void* device, size_t bytes, void* host, size_t more, int* info) {
  if (!is_good(h, p) || !is_space(device, bytes, host, more) || lda < m || type != type_tau || type != compute) return INVALID;
  return by_type(type, [&](auto x) {
    using T = decltype(x);
    int rows = m, columns = n, leading = lda, size = 64 * n;
    std::vector<T> own(size);
    of<void(int*, int*, T*, int*, T*, T*, int*, int*)>(letter<T>() + "geqrf")(&rows, &columns, (T*)a, &leading, (T*)tau, own.data(), &size, info);
    return (int)OK;
  });
}

int cusolverDnXgetrf_bufferSize(Handle* h, void* p, int64_t m, int64_t n, int type, const void* a, int64_t lda, int compute, size_t* device,
                                size_t* host) {
  return h && p == &parameters && lda >= m && type == compute ? tell(device, host) : (int)INVALID;
}
int cusolverDnXgetrf(Handle* h, void* p, int64_t m, int64_t n, int type, void* a, int64_t lda, int64_t* rows, int compute, void* device,
                     size_t bytes, void* host, size_t more, int* info) {
  if (!is_good(h, p) || !is_space(device, bytes, host, more) || lda < m || type != compute || !rows) return INVALID;
  return by_type(type, [&](auto x) {
    using T = decltype(x);
    int height = m, width = n, leading = lda;
    std::vector<int> narrow(n);
    of<void(int*, int*, T*, int*, int*, int*)>(letter<T>() + "getrf")(&height, &width, (T*)a, &leading, narrow.data(), info);
    for (int64_t k = 0; k < n; k++) rows[k] = narrow[k];
    return (int)OK;
  });
}
int cusolverDnXgetrs(Handle* h, void* p, int turned, int64_t n, int64_t columns, int type, const void* a, int64_t lda, const int64_t* rows,
                     int type_b, void* b, int64_t ldb, int* info) {
  if (!is_good(h, p) || turned || lda < n || ldb < n || type != type_b) return INVALID;
  return by_type(type, [&](auto x) {
    using T = decltype(x);
    char as_it_is = 'N';
    int size = n, right = columns, leading = lda, other = ldb;
    std::vector<int> narrow(rows, rows + n);
    of<void(char*, int*, int*, T*, int*, int*, T*, int*, int*)>(letter<T>() + "getrs")(
        &as_it_is, &size, &right, (T*)a, &leading, narrow.data(), (T*)b, &other, info);
    return (int)OK;
  });
}

int cusolverDnXpotrf_bufferSize(Handle* h, void* p, int half, int64_t n, int type, const void* a, int64_t lda, int compute, size_t* device,
                                size_t* host) {
  return h && p == &parameters && lda >= n && type == compute ? tell(device, host) : (int)INVALID;
}
int cusolverDnXpotrf(Handle* h, void* p, int half, int64_t n, int type, void* a, int64_t lda, int compute, void* device, size_t bytes,
                     void* host, size_t more, int* info) {
  if (!is_good(h, p) || !is_space(device, bytes, host, more) || lda < n || type != compute) return INVALID;
  return by_type(type, [&](auto x) {
    using T = decltype(x);
    char uplo = half ? 'U' : 'L';
    int size = n, leading = lda;
    of<void(char*, int*, T*, int*, int*)>(letter<T>() + "potrf")(&uplo, &size, (T*)a, &leading, info);
    return (int)OK;
  });
}

#define TYPED(X, T, NAME)                                                                                                        \
  int cusolverDn##NAME##_bufferSize(Handle* h, int m, int n, int k, const T* a, int lda, const T* tau, int* count) {            \
    return h && lda >= m ? (*count = ELEMENTS, (int)OK) : (int)INVALID;                                                          \
  }                                                                                                                              \
  int cusolverDn##NAME(Handle* h, int m, int n, int k, T* a, int lda, const T* tau, T* work, int count, int* info) {            \
    return generate(h, m, n, k, a, lda, tau, work, count, info);                                                                 \
  }                                                                                                                              \
  int cusolverDn##X##gesvdjBatched_bufferSize(Handle* h, int mode, int m, int n, const T* a, int lda, const Real<T>* s, const T* u, \
                                              int ldu, const T* v, int ldv, int* count, void* how, int stack) {                  \
    return h && how == &jacobi && m <= 32 && n <= 32 && stack > 0 ? (*count = ELEMENTS, (int)OK) : (int)INVALID;                 \
  }                                                                                                                              \
  int cusolverDn##X##gesvdjBatched(Handle* h, int mode, int m, int n, T* a, int lda, Real<T>* s, T* u, int ldu, T* v, int ldv,   \
                                   T* work, int count, int* info, void* how, int stack) {                                        \
    return jacobi_stack(h, mode, m, n, a, lda, s, u, ldu, v, ldv, work, count, info, how, stack);                                \
  }
TYPED(S, F, Sorgqr)
TYPED(D, D, Dorgqr)
TYPED(C, C, Cungqr)
TYPED(Z, Z, Zungqr)
}
