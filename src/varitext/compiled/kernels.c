/* The work of the DCM likelihood that is too small or too scattered for torch: hundreds of short operations a batch,
 * or passes over [V, B] numbers that one pass can do. Matrix products stay torch's. `__init__.py` declares these
 * functions to Python; layers/dcm.py and layers/curvature.py call them, and have the same in torch for machines
 * without a compiler, for other devices and for double precision.
 */
#include "kernels.h"

#define SUMMED 8  /* factors of a rising factorial taken one by one; then Stirling's series, as in layers/grouped_counts.py */
#define FACTORS 8  /* factors whose product stays within double precision: of masses between e^-60 and e^30 */

/* The version of the interface: raise it here and in __init__.py whenever a function's arguments change */
EXPORTED int64_t version(void) { return 5; }

/* The width in bits of the CPU's registers, as far as there is a build of this library for it */
EXPORTED int64_t registers(void) {
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 128;
    return __builtin_cpu_supports("avx512f") ? 512 : 256;
#else
    return 128;
#endif
}

/* Rising factorials */

typedef struct {
    double log, product;
    int factors;
} LogProduct;

static inline void times(LogProduct *of, double factor) {
    of->product *= factor;
    if (++of->factors == FACTORS) {  /* one logarithm for several factors */
        of->log += log(of->product);
        of->product = 1;
        of->factors = 0;
    }
}

static inline double log_of(const LogProduct *of) { return of->log + log(of->product); }

static double stirling(double inverse) {
    double square = inverse * inverse;
    return inverse * (1 / 12.0 - square * (1 / 360.0 - square / 1260));
}

static double stirling_slope(double inverse) {
    double square = inverse * inverse;
    return square * (1 / 12.0 - square * (1 / 120.0 - square / 252));
}

/* a^(n) into a product; returns the slope of its logarithm, digamma(a + n) - digamma(a) */
static inline Real rise(LogProduct *of, Real a, Real n) {
    if (n == 1) {  /* three words in four */
        times(of, a);
        return 1 / a;
    }
    double slope = 0, rest = n;
    for (int factor = 0; factor < SUMMED && rest > 0; factor++, rest--) {
        double shifted = (double)a + factor;
        times(of, shifted);
        slope += 1 / shifted;
    }
    if (rest > 0) {
        double from = (double)a + SUMMED, low = 1 / from, high = 1 / (from + rest), growth = log1p(rest / from);
        of->log += rest * log(from) + (from + rest - 0.5) * growth - rest + stirling(high) - stirling(low);
        slope += growth - 0.5 * (high - low) - stirling_slope(high) + stirling_slope(low);
    }
    return (Real)slope;
}

/* The effective number of n draws from a mass a: a (digamma(a + n) - digamma(a)), between 1 and n */
Real effective_count(Real a, Real n) {
    if (n == 1) return 1;
    LogProduct unused = {0, 1, 0};
    return a * rise(&unused, a, n);
}

/* The counts of groups in each document, in the order of the groups; returns how many are above zero, or an error
 * code. `items` and `sums` have room for as many as there are words. All other functions read what has passed here. */
EXPORTED int64_t count_groups(int64_t documents, int64_t vocabulary, int64_t groups, int64_t entries,
                              const int64_t *starts, const int64_t *words, const Real *counts,
                              const int64_t *group_of_word, int64_t *group_starts, int64_t *items,
                              int64_t *document_of, Real *sums) {
    int64_t found = 0;
    if (starts[0] != 0 || starts[documents] != entries) return OUT_OF_RANGE;
    for (int64_t w = 0; w < vocabulary; w++)
        if (group_of_word[w] < 0 || group_of_word[w] >= groups) return OUT_OF_RANGE;
    for (int64_t e = 0; e < entries; e++)
        if (words[e] < 0 || words[e] >= vocabulary) return OUT_OF_RANGE;
    for (int64_t b = 0; b < documents; b++)
        if (starts[b] > starts[b + 1]) return OUT_OF_RANGE;
    Real *dense = calloc((size_t)groups + 1, sizeof(Real));
    if (!dense) return NO_MEMORY;
    for (int64_t b = 0; b < documents; b++) {
        group_starts[b] = found;
        for (int64_t e = starts[b]; e < starts[b + 1]; e++) dense[group_of_word[words[e]]] += counts[e];
        for (int64_t g = 0; g < groups; g++)
            if (dense[g] != 0) {
                items[found] = g;
                document_of[found] = b;
                sums[found++] = dense[g];
                dense[g] = 0;
            }
    }
    group_starts[documents] = found;
    free(dense);
    return found;
}

/* Effective counts of words and groups at masses that are the same for all documents: a (digamma(a + n) - digamma(a)).
 * Of groups in the first urn less in their own, [B, G], which comes as zeros. */
EXPORTED void effective_counts(int64_t documents, int64_t groups, const int64_t *starts, const int64_t *words,
                               const Real *counts, const int64_t *group_starts, const int64_t *group_items,
                               const Real *group_counts, const Real *lengths, const Real *masses,
                               const Real *group_masses, const Real *group_sums, Real *of_words,
                               Real *of_groups, Real *of_documents) {
    Real total = 0;
    for (int64_t g = 0; g < groups; g++) total += group_masses[g];
    for (int64_t b = 0; b < documents; b++) {
        LogProduct unused = {0, 1, 0};
        for (int64_t e = starts[b]; e < starts[b + 1]; e++) {
            Real a = masses[words[e]];
            of_words[e] = a * rise(&unused, a, counts[e]);
        }
        for (int64_t e = group_starts[b]; e < group_starts[b + 1]; e++) {
            int64_t g = group_items[e];
            of_groups[b * groups + g] = group_masses[g] * rise(&unused, group_masses[g], group_counts[e])
                                      - group_sums[g] * rise(&unused, group_sums[g], group_counts[e]);
        }
        of_documents[b] = total * rise(&unused, total, lengths[b]);
    }
}

/* Urns */

/* Logits [V, B] become a_w, exp(logits); and their sums over groups, [G, B] */
static void fill_masses(int64_t vocabulary, int64_t groups, int64_t columns,
                        const int64_t *restrict group_of_word, Real least, Real most,
                        Real *restrict logits, Real *restrict sums) {
    memset(sums, 0, sizeof(Real) * (size_t)(groups * columns));
    for (int64_t w = 0; w < vocabulary; w++) {
        Real *restrict row = logits + w * columns, *restrict sum = sums + group_of_word[w] * columns;
        for (int64_t c = 0; c < columns; c++) {
            Real x = row[c];
            x = x < least ? least : x;  /* NaN stays NaN */
            x = x > most ? most : x;
            row[c] = exponential(x);
            sum[c] += row[c];
        }
    }
}

static void scale_groups(int64_t groups, int64_t columns, const Real *restrict sums,
                         const Real *restrict scales, Real *restrict masses, Real *restrict total) {
    memset(total, 0, sizeof(Real) * (size_t)columns);
    for (int64_t g = 0; g < groups; g++)
        for (int64_t c = 0; c < columns; c++) {
            masses[g * columns + c] = sums[g * columns + c] * scales[g];
            total[c] += masses[g * columns + c];
        }
}

/* Of the first urn: how many independent words the document's are worth to each group; and the gradient in b_g as far
 * as it comes from the total. */
static void share_total_slopes(int64_t groups, int64_t columns, const Real *restrict slopes,
                               const Real *restrict masses, Real *restrict weights,
                               Real *restrict in_masses) {
    for (int64_t g = 0; g < groups; g++)
        for (int64_t c = 0; c < columns; c++) {
            weights[g * columns + c] = masses[g * columns + c] * slopes[c];
            in_masses[g * columns + c] = -slopes[c];
        }
}

/* From the gradient in b_g to those in log s_g and, by way of b_g, in A_g, which takes its place. */
static void pass_on_to_sums(int64_t groups, int64_t columns, const Real *restrict scales,
                            const Real *restrict masses, Real *restrict in_masses,
                            Real *restrict in_log_scales) {
    for (int64_t g = 0; g < groups; g++)
        for (int64_t c = 0; c < columns; c++) {
            in_log_scales[g * columns + c] = in_masses[g * columns + c] * masses[g * columns + c];
            in_masses[g * columns + c] *= scales[g];
        }
}

/* From the gradient in A_g to that in log a_w, which takes the place of a_w but for documents' own words. */
static void pass_on_to_words(int64_t vocabulary, int64_t columns, const int64_t *restrict group_of_word,
                             const Real *restrict in_sums, Real *restrict masses) {
    for (int64_t w = 0; w < vocabulary; w++) {
        const Real *restrict in_sum = in_sums + group_of_word[w] * columns;
        for (int64_t c = 0; c < columns; c++) masses[w * columns + c] *= in_sum[c];
    }
}

/* The log likelihood of each document, a column of logits [V, B]; and, if asked for by `in_log_scales`, its gradient in
 * the logits, which takes their place, and in the log scales, [G, B]. `group_weights` [G, B] is B times the slope of
 * log B^(N) in B, shared as the first urn's masses are. Returns 0 or an error code. */
EXPORTED int64_t urns(int64_t documents, int64_t vocabulary, int64_t groups, const Real *scales, Real least,
                      Real most, const int64_t *group_of_word, const int64_t *starts, const int64_t *words,
                      const Real *counts, const int64_t *group_starts, const int64_t *group_items,
                      const Real *group_counts, const Real *lengths, Real *logits, Real *log_likelihood,
                      Real *group_weights, Real *in_log_scales) {
    Real *memory = malloc(sizeof(Real) * room_of_urns(documents, groups, starts[documents]));
    if (!memory) return NO_MEMORY;
    urns_within(memory, documents, vocabulary, groups, scales, least, most, group_of_word, starts, words, counts,
                group_starts, group_items, group_counts, lengths, logits, log_likelihood, group_weights, in_log_scales);
    free(memory);
    return 0;
}

/* The numbers that `urns_within` needs `memory` for */
size_t room_of_urns(int64_t documents, int64_t groups, int64_t entries) {
    return (size_t)(3 * groups * documents + 2 * documents + 2 * entries + 1);
}

void urns_within(Real *memory, int64_t documents, int64_t vocabulary, int64_t groups, const Real *scales, Real least,
                 Real most, const int64_t *group_of_word, const int64_t *starts, const int64_t *words,
                 const Real *counts, const int64_t *group_starts, const int64_t *group_items,
                 const Real *group_counts, const Real *lengths, Real *logits, Real *log_likelihood,
                 Real *group_weights, Real *in_log_scales) {
    int64_t columns = documents, entries = starts[documents], of_groups = groups * columns;
    Real *sums = memory, *masses = logits;
    Real *group_masses = sums + of_groups, *in_groups = group_masses + of_groups, *total = in_groups + of_groups;
    Real *total_slopes = total + columns, *word_slopes = total_slopes + columns,
          *within_slopes = word_slopes + entries;
    fill_masses(vocabulary, groups, columns, group_of_word, least, most, masses, sums);
    scale_groups(groups, columns, sums, scales, group_masses, total);
    for (int64_t c = 0; c < columns; c++) {
        LogProduct divisor = {0, 1, 0};
        total_slopes[c] = rise(&divisor, total[c], lengths[c]);
        log_likelihood[c] = -(Real)log_of(&divisor);
    }
    share_total_slopes(groups, columns, total_slopes, group_masses, group_weights, in_groups);
    for (int64_t c = 0; c < columns; c++) {
        LogProduct factors = {0, 1, 0}, divisors = {0, 1, 0};
        for (int64_t e = starts[c]; e < starts[c + 1]; e++)
            word_slopes[e] = rise(&factors, masses[words[e] * columns + c], counts[e]);
        for (int64_t e = group_starts[c]; e < group_starts[c + 1]; e++) {
            int64_t place = group_items[e] * columns + c;
            in_groups[place] += rise(&factors, group_masses[place], group_counts[e]);
            within_slopes[e] = rise(&divisors, sums[place], group_counts[e]);
        }
        log_likelihood[c] += (Real)(log_of(&factors) - log_of(&divisors));
    }
    if (in_log_scales) {
        pass_on_to_sums(groups, columns, scales, group_masses, in_groups, in_log_scales);
        for (int64_t c = 0; c < columns; c++)
            for (int64_t e = group_starts[c]; e < group_starts[c + 1]; e++)
                in_groups[group_items[e] * columns + c] -= within_slopes[e];
        for (int64_t c = 0; c < columns; c++)  /* a document's own words have a slope of their own, too */
            for (int64_t e = starts[c]; e < starts[c + 1]; e++) word_slopes[e] *= masses[words[e] * columns + c];
        pass_on_to_words(vocabulary, columns, group_of_word, in_groups, masses);
        for (int64_t c = 0; c < columns; c++)
            for (int64_t e = starts[c]; e < starts[c + 1]; e++) masses[words[e] * columns + c] += word_slopes[e];
    }
}

/* Curvature */

/* r r^T + C of each column r of means [K, G], the lower triangle row by row: [K (K + 1) / 2, G] */
EXPORTED void outer_squares(int64_t size, int64_t groups, const Real *restrict means,
                            const Real *restrict within, Real *restrict squares) {
    for (int64_t i = 0; i < size; i++)
        for (int64_t j = 0; j <= i; j++, squares += groups)
            for (int64_t g = 0; g < groups; g++)
                squares[g] = means[i * groups + g] * means[j * groups + g] + within[i * size + j];
}

/* result - sum_k a[k] b[k]; four sums at a time, since each waits for its own last product */
INLINED void subtract_products(Lanes *result, const Lanes *a, const Lanes *b, int64_t many) {
    Lanes first = *result, second = {0}, third = {0}, fourth = {0};
    int64_t k = 0;
    for (; k + 4 <= many; k += 4) {
        first -= a[k] * b[k];
        second -= a[k + 1] * b[k + 1];
        third -= a[k + 2] * b[k + 2];
        fourth -= a[k + 3] * b[k + 3];
    }
    for (; k < many; k++) first -= a[k] * b[k];
    *result = (first + second) + (third + fourth);
}

/* The lower Cholesky factors of matrix + `added` I, of LANES matrices side by side: lower triangles, row by row. A factor takes
 * its matrix's place; on its diagonal are reciprocals. */
INLINED void factorise_lanes(int64_t size, const Lanes *added, Lanes *restrict matrix) {
    for (int64_t i = 0; i < size; i++) {
        Lanes *row = matrix + i * (i + 1) / 2;
        for (int64_t j = 0; j < i; j++) {
            subtract_products(&row[j], row, matrix + j * (j + 1) / 2, j);
            row[j] *= matrix[j * (j + 1) / 2 + j];
        }
        Lanes square = row[i] + *added;
        subtract_products(&square, row, row, i);
        for (int lane = 0; lane < LANES; lane++) LANE(row[i], lane) = 1 / SQRT(LANE(square, lane));
    }
}

/* (I + matrix)^-1 vector, in the vector's place; of LANES matrices and vectors */
void solve_lanes(int64_t size, Lanes *restrict matrix, Lanes *restrict vector) {
    const Lanes one = (Lanes){0} + 1;
    factorise_lanes(size, &one, matrix);
    for (int64_t i = 0; i < size; i++) {
        const Lanes *row = matrix + i * (i + 1) / 2;
        subtract_products(&vector[i], row, vector, i);
        vector[i] *= row[i];
    }
    for (int64_t i = size - 1; i >= 0; i--) {
        const Lanes *row = matrix + i * (i + 1) / 2;
        vector[i] *= row[i];
        for (int64_t j = 0; j < i; j++) vector[j] -= row[j] * vector[i];
    }
}

/* The inverses of the factors of I + jitter trace + matrix. An inverse comes column by column from its diagonal down, so
 * that all products run along rows or columns; and its own diagonal says where there is none. */
void invert_lanes(int64_t size, Real jitter, Lanes *restrict factor, Lanes *restrict inverse) {
    Lanes trace = {0};
    for (int64_t i = 0; i < size; i++) trace += factor[i * (i + 1) / 2 + i];
    trace = 1 + jitter * trace;
    factorise_lanes(size, &trace, factor);
    for (int64_t j = 0; j < size; j++) {
        Lanes *column = inverse + j * size - j * (j + 1) / 2;  /* [i] is row i of column j */
        column[j] = factor[j * (j + 1) / 2 + j];
        for (int64_t i = j + 1; i < size; i++) {
            const Lanes *row = factor + i * (i + 1) / 2;
            Lanes sum = {0};
            subtract_products(&sum, row + j, column + j, i - j);
            column[i] = sum * row[i];
        }
    }
}

/* Of `many` documents from `first` on: curvatures [K (K + 1) / 2, B], less expected expected^T / worth, with expected
 * [K, B] and worth [B] */
void load_curvature(int64_t documents, int64_t size, int64_t first, int64_t many,
                    const Real *restrict curvature, const Real *restrict expected,
                    const Real *restrict worth, Lanes *restrict matrix) {
    Lanes *means = matrix + size * (size + 1) / 2, share = {0};  /* room that the inverse takes later */
    for (int64_t lane = 0; lane < many; lane++) LANE(share, lane) = 1 / worth[first + lane];
    for (int64_t i = 0; i < size; i++) {
        means[i] = (Lanes){0};
        memcpy(&means[i], expected + i * documents + first, sizeof(Real) * (size_t)many);
    }
    for (int64_t i = 0; i < size; i++)
        for (int64_t j = 0; j <= i; j++, matrix++, curvature += documents) {
            Lanes numbers = {0};
            memcpy(&numbers, curvature + first, sizeof(Real) * (size_t)many);
            *matrix = numbers - means[i] * means[j] * share;
        }
}

void store_roots(int64_t size, int64_t many, const Lanes *restrict inverse, Real *restrict roots) {
    for (int64_t lane = 0; lane < many; lane++, roots += size * size) {
        const Lanes *column = inverse;
        int fault = 0;
        memset(roots, 0, sizeof(Real) * (size_t)(size * size));
        for (int64_t j = 0; j < size; column += size - j, j++)
            for (int64_t i = j; i < size; i++) {
                Real number = ((const Real *)&column[i - j])[lane];
                fault |= !(number - number == 0);  /* infinite or NaN */
                roots[i * size + j] = number;
            }
        for (int64_t each = 0; fault && each < size * size; each++) roots[each] = NAN;
    }
}

/* Roots [B, K, K] of what `load_curvature` reads, lower triangular; NaN where there is none. Returns 0 or an
 * error code. */
EXPORTED int64_t inverse_cholesky(int64_t documents, int64_t size, Real jitter, const Real *curvature,
                                  const Real *expected, const Real *worth, Real *roots) {
    int64_t numbers = size * (size + 1) / 2;
    Lanes *matrix = aligned_alloc(sizeof(Lanes), sizeof(Lanes) * (size_t)(2 * numbers + 1));
    if (!matrix) return NO_MEMORY;
    for (int64_t first = 0; first < documents; first += LANES) {
        int64_t many = documents - first < LANES ? documents - first : LANES;
        load_curvature(documents, size, first, many, curvature, expected, worth, matrix);
        invert_lanes(size, jitter, matrix, matrix + numbers);
        store_roots(size, many, matrix + numbers, roots + first * size * size);
    }
    aligned_free(matrix);
    return 0;
}

/* M^T M v for lower triangular M, [B, K, K], and v, [B, K] */
EXPORTED void covariance_times(int64_t documents, int64_t size, const Real *restrict roots,
                               const Real *restrict vectors, Real *restrict products) {
    memset(products, 0, sizeof(Real) * (size_t)(documents * size));
    for (int64_t b = 0; b < documents; b++, vectors += size, products += size)
        for (int64_t i = 0; i < size; i++, roots += size) {
            Real along[LANES] = {0}, sum = 0;
            int64_t j = 0;
            for (; j + LANES <= i + 1; j += LANES)
                for (int lane = 0; lane < LANES; lane++) along[lane] += roots[j + lane] * vectors[j + lane];
            for (; j <= i; j++) sum += roots[j] * vectors[j];
            for (int lane = 0; lane < LANES; lane++) sum += along[lane];
            for (j = 0; j <= i; j++) products[j] += roots[j] * sum;
        }
}
