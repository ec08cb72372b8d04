/* Declarations shared by the files of this library. Plain C without Python's headers: `__init__.py` declares the functions to
 * Python. All arrays are contiguous; numbers are Real, indices int64. The entries of document b are starts[b] ..
 * starts[b + 1] - 1.
 */
#ifndef VARITEXT_KERNELS_H
#define VARITEXT_KERNELS_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#include <malloc.h>
#define EXPORTED __declspec(dllexport)
#define aligned_alloc(alignment, bytes) _aligned_malloc(bytes, alignment)
#define aligned_free _aligned_free
#else
#define EXPORTED
#define aligned_free free
#endif

/* single precision; tests build the library in double precision too */
#ifdef VARITEXT_DOUBLE
typedef double Real;
#define SQRT sqrt
#else
typedef float Real;
#define SQRT sqrtf
#endif

/* Lanes: one number of each of LANES documents, which are computed side by side: what a register holds. gcc keeps
 * wider vectors in memory, so the library is built for each register width (setup.py). */
#if defined(__GNUC__) && !defined(VARITEXT_NO_LANES)  /* gcc, clang */
#if defined(__AVX512F__)
#define REGISTER 64  /* bytes */
#elif defined(__AVX2__)
#define REGISTER 32
#else
#define REGISTER 16
#endif
#define LANES ((int)(REGISTER / sizeof(Real)))
#define INLINED static inline __attribute__((always_inline))
typedef Real Lanes __attribute__((vector_size(REGISTER)));
typedef Real AnyLanes __attribute__((vector_size(REGISTER), aligned(sizeof(Real)), may_alias));
#else  /* Microsoft's compiler has no vector extensions */
#define LANES 1
#define INLINED static inline
typedef Real Lanes;
typedef Real AnyLanes;
#endif
#define LANE(numbers, lane) (((Real *)&(numbers))[lane])
#define LOAD(place) (*(const AnyLanes *)(place))
#define STORE(place, numbers) (*(AnyLanes *)(place) = (numbers))

/* e^x for x from -87 to 88, accurate to rounding; unlike expf, the compiler can vectorise it */
#ifdef VARITEXT_DOUBLE
static inline Real exponential(Real x) { return exp(x); }
#else
static inline float exponential(float x) {
    const float to_whole = 12582912.0f;  /* 1.5 2^23: adding it rounds to a whole number */
    union { float value; uint32_t bits; } shifted, scale;
    x *= 1.44269504088896f;
    shifted.value = x + to_whole;
    scale.bits = (shifted.bits - 0x4B400000u + 127u) << 23;
    float rest = (x - (shifted.value - to_whole)) * 0.693147180559945f;  /* e^rest, |rest| < .35 */
    float sum = 1.0f / 5040;
    sum = sum * rest + 1.0f / 720;
    sum = sum * rest + 1.0f / 120;
    sum = sum * rest + 1.0f / 24;
    sum = sum * rest + 1.0f / 6;
    sum = sum * rest + 0.5f;
    sum = sum * rest + 1.0f;
    sum = sum * rest + 1.0f;
    return sum * scale.value;
}
#endif

#define NO_MEMORY (-1)
#define OUT_OF_RANGE (-2)

/* kernels.c */
EXPORTED int64_t count_groups(int64_t documents, int64_t vocabulary, int64_t groups, int64_t entries,
                              const int64_t *starts, const int64_t *words, const Real *counts,
                              const int64_t *group_of_word, int64_t *group_starts, int64_t *items,
                              int64_t *document_of, Real *sums);
EXPORTED int64_t urns(int64_t documents, int64_t vocabulary, int64_t groups, const Real *scales, Real least,
                      Real most, const int64_t *group_of_word, const int64_t *starts, const int64_t *words,
                      const Real *counts, const int64_t *group_starts, const int64_t *group_items,
                      const Real *group_counts, const Real *lengths, Real *logits, Real *log_likelihood,
                      Real *group_weights, Real *in_log_scales);
size_t room_of_urns(int64_t documents, int64_t groups, int64_t entries);
void urns_within(Real *memory, int64_t documents, int64_t vocabulary, int64_t groups, const Real *scales, Real least,
                 Real most, const int64_t *group_of_word, const int64_t *starts, const int64_t *words,
                 const Real *counts, const int64_t *group_starts, const int64_t *group_items,
                 const Real *group_counts, const Real *lengths, Real *logits, Real *log_likelihood,
                 Real *group_weights, Real *in_log_scales);
Real effective_count(Real mass, Real count);
void load_curvature(int64_t documents, int64_t size, int64_t first, int64_t many, const Real *curvature,
                    const Real *expected, const Real *worth, Lanes *matrix);
void store_roots(int64_t size, int64_t many, const Lanes *inverse, Real *roots);
void solve_lanes(int64_t size, Lanes *matrix, Lanes *vector);
void invert_lanes(int64_t size, Real jitter, Lanes *factor, Lanes *inverse);

#endif
