/* The default document model in C: its structures, and what training and inference share.
 *
 * Arrays of documents are [numbers, B]: a row for each number, a column for each document. B is a multiple of LANES;
 * the last documents may be empty, and then have weight 0.
 */
#ifndef VARITEXT_MODEL_H
#define VARITEXT_MODEL_H

#include "kernels.h"

#define ROWS 6  /* of a tile of a matrix product: with two registers of columns, its sums fit in the registers of AVX2 */
#define WORDS 48  /* rows of a gradient that are made at a time */
#define CHUNK 256  /* word vectors that are multiplied at a time */
#define ALIGNMENT 128

/* The model and a part of a batch */

enum { LAYER_WEIGHTS, LAYER_BIASES, PER_LAYER };
enum { MEAN_WEIGHTS, MEAN_BIASES, LOG_STD_WEIGHTS, LOG_STD_BIASES, STEP_GATES, DECODER, LENGTHS, BIASES, LOG_SCALES };

typedef struct {
    int64_t vocabulary, groups, size, hidden, layers;  /* V, G, K, H, L */
    const Real *const *parameters;  /* two of each layer; then as in the enumeration above */
    const int64_t *group_of_word;  /* [V] */
    Real least_log_mass, most_log_mass, most_log_length, most_mean, most_step, most_stretch, least_log_std, most_log_std;
    Real jitter;
} Model;

typedef struct {
    int64_t size, entries;  /* B, n */
    const int64_t *starts, *words;  /* `words` and `counts` are those of these documents alone */
    const Real *counts, *lengths;
} Documents;

typedef struct {
    Documents documents;
    int64_t samples;  /* S */
    const Real *noise;  /* [S, B, K] */
    const Real *weights;  /* [B]   of the documents' bounds in the objective */
    Real kl_weight;
    Real *const *gradients;  /* of the objective in each parameter, in their order; overwritten */
    Real *log_likelihood, *kl;  /* [B] */
} Part;

typedef struct {
    Documents documents;
    int64_t steps;  /* of Newton, each kept only if log p(h, X) goes up; with none and no roots, the guess */
    Real rounding;  /* relative accuracy of log p(h, X) */
    Real *mean, *stretch;  /* [B, K] */
    Real *roots;  /* [B, K, K], or none */
} Inference;

/* The buffers of a step: first those that depend on the parameters only (dcm_decoder.py::moments) */
typedef struct {
    Real *scales, *sums, *group_masses;  /* [G]   s_g, A_g, b_g */
    Real *masses;  /* [V]   a_w at h = 0 */
    Real *means, *average;  /* [G, K], [K]   of word vectors, by group and of all */
    Real *numbers;  /* [K, G]   the means, transposed */
    Real *squares;  /* [ROWS, G]   some rows of r r^T + C, for each mean r */
    Real *within, *among;  /* [K, K + padding]   covariances of word vectors within groups, and of all */
    Real *scaled;  /* [CHUNK, K + padding]   some vectors, times their shares */
    int64_t *starts, *group_starts, *group_items, *group_documents;
    Real *lengths, *group_counts, *weights;
    Real *input;  /* [K + 2, B]   of the network */
    Real *layer_sums, *outputs;  /* [L H, B]   of each layer, before and after its activation */
    Real *mean, *log_std;  /* [K, B]   outputs of the network */
    Real *h;  /* [K + 2, B]   with the log length and 1, as the decoder reads it */
    Real *logits;  /* [V, B] */
    Real *value;  /* [B] */
    Real *of_urns;  /* what `urns_within` needs */
    Real *group_weights, *in_log_scales;  /* [G, B] */
    Real *in_h;  /* [K, B] */
    Real *curvature, *expected, *worth;  /* [K (K + 1) / 2, B], [K, B], [B] */
    Real *step;  /* [K, B]   of Newton, clamped */
    Real *drawn;  /* [S K, B]   M^T noise */
    Real *variance, *diagonal;  /* [K, B]   of M^T M and of M */
    Real *q_mean, *stretch;  /* [K, B] */
    Real *in_mean, *in_stretch;  /* [K, B] */
    Real *in_outputs, *in_sums;  /* [H, B] */
    Real *turned;  /* [B, columns]   a transposed factor */
    Real *rows;  /* [WORDS, K + 2]   of the decoder's gradient */
    Lanes *matrix;  /* a lower triangle of LANES documents, and some vectors */
    Lanes *roots;  /* lower triangles of all documents, column by column */
    Real *best_h, *best_slope, *best_weights, *best_value;  /* [K, B], [K, B], [G, B], [B]   in inference */
} Room;

static inline int64_t up(int64_t number) { return (number + LANES - 1) / LANES * LANES; }

static inline Real clamped(Real number, Real least, Real most) {  /* NaN stays NaN */
    number = number < least ? least : number;
    return number > most ? most : number;
}

static inline int inside(Real number, Real least, Real most) { return number >= least && number <= most; }

static inline const Real *parameter(const Model *m, int which) { return m->parameters[PER_LAYER * m->layers + which]; }

static inline Real sigmoid(Real x) { return 1 / (1 + exponential(clamped(-x, -80, 80))); }

/* products.c */
typedef struct {
    const Real *numbers;
    int64_t row, inner;  /* steps from one row to the next, and from one term of a sum to the next */
} Factor;

Factor of_rows(const Real *numbers, int64_t columns);
Factor transposed(const Real *numbers, int64_t columns);
void multiply(int64_t rows, int64_t inner, int64_t columns, Factor a, const Real *b, int64_t b_row, Real *c,
              int64_t c_row, int add);

/* model.c */
size_t divide(char *start, Room *room, const Model *m, int64_t documents, int64_t entries, int64_t samples);
Real moments(const Model *m, Room *room);
int64_t guess(const Model *m, const Documents *d, Real total, Room *room);
void likelihood(const Model *m, const Documents *d, int64_t columns, int with_slopes, Room *room);
Lanes *roots_of(const Model *m, Room *room, int64_t first);
void covariance_roots(const Model *m, int64_t columns, Room *room);
void newton_step(const Model *m, int64_t columns, int64_t first, const Real *slope, Room *room);

#endif
