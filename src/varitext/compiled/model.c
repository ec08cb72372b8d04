/* The default document model (models/documents/nvdm_dcm.py), forward: from counts to the network's guess at h, the
 * likelihood and the curvature there. The same in torch is the reference: tests compare both, in single and in double
 * precision.
 */
#include "model.h"

/* Takes bytes from the memory that starts at *next; if that is NULL, only counts them */
static void *take(char **next, size_t bytes) {
    char *place = *next;
    *next += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return place;
}

#define REALS(many) take(&next, sizeof(Real) * (size_t)(many))
#define INTEGERS(many) take(&next, sizeof(int64_t) * (size_t)(many))

size_t divide(char *start, Room *room, const Model *m, int64_t documents, int64_t entries, int64_t samples) {
    char *next = start + (ALIGNMENT - (uintptr_t)start % ALIGNMENT) % ALIGNMENT;
    int64_t columns = up(documents), k = m->size, of_groups = m->groups * columns, of_size = k * columns;
    int64_t widest = up(m->hidden > k + 2 ? m->hidden : k + 2), wide = up(k);
    room->scales = REALS(m->groups);
    room->sums = REALS(m->groups);
    room->group_masses = REALS(m->groups);
    room->masses = REALS(m->vocabulary);
    room->means = REALS(m->groups * k);
    room->numbers = REALS(k * m->groups);
    room->squares = REALS(ROWS * m->groups);
    room->average = REALS(k);
    room->within = REALS(k * wide);
    room->among = REALS(k * wide);
    room->scaled = REALS(CHUNK * wide);
    room->starts = INTEGERS(columns + 1);
    room->group_starts = INTEGERS(columns + 1);
    room->group_items = INTEGERS(entries + 1);
    room->group_documents = INTEGERS(entries + 1);
    room->lengths = REALS(columns);
    room->group_counts = REALS(entries + 1);
    room->weights = REALS(columns);
    room->input = REALS((k + 2) * columns);
    room->layer_sums = REALS(m->layers * m->hidden * columns);
    room->outputs = REALS(m->layers * m->hidden * columns);
    room->mean = REALS(of_size);
    room->log_std = REALS(of_size);
    room->h = REALS((k + 2) * columns);
    room->logits = REALS(m->vocabulary * columns);
    room->value = REALS(columns);
    room->of_urns = REALS(room_of_urns(columns, m->groups, entries));
    room->group_weights = REALS(of_groups);
    room->in_log_scales = REALS(of_groups);
    room->in_h = REALS(of_size);
    room->curvature = REALS(k * (k + 1) / 2 * columns);
    room->expected = REALS(of_size);
    room->worth = REALS(columns);
    room->step = REALS(of_size);
    room->drawn = REALS(samples * of_size);
    room->variance = REALS(of_size);
    room->diagonal = REALS(of_size);
    room->q_mean = REALS(of_size);
    room->stretch = REALS(of_size);
    room->in_mean = REALS(of_size);
    room->in_stretch = REALS(of_size);
    room->in_outputs = REALS(m->hidden * columns);
    room->in_sums = REALS(m->hidden * columns);
    room->turned = REALS(columns * widest);
    room->rows = REALS(WORDS * (k + 2));
    room->matrix = take(&next, sizeof(Lanes) * (size_t)(k * (k + 1) / 2 + 2 * k + 1));
    room->roots = take(&next, sizeof(Real) * (size_t)(k * (k + 1) / 2 * columns));
    room->best_h = REALS(of_size);
    room->best_slope = REALS(of_size);
    room->best_weights = REALS(of_groups);
    room->best_value = REALS(columns);
    return (size_t)(next - start);
}

/* Moments of the word vectors */

/* The sum of shares times the outer squares of vectors [many, K], into or onto [K, K + padding] */
static void outer_sum(int64_t size, int64_t many, const Real *restrict shares, const Real *vectors,
                      Real *restrict scaled, Real *into) {
    int64_t wide = up(size);
    memset(into, 0, sizeof(Real) * (size_t)(size * wide));
    memset(scaled, 0, sizeof(Real) * (size_t)(CHUNK * wide));
    for (int64_t from = 0; from < many; from += CHUNK) {
        int64_t rows = many - from < CHUNK ? many - from : CHUNK;
        for (int64_t r = 0; r < rows; r++)
            for (int64_t k = 0; k < size; k++) scaled[r * wide + k] = shares[from + r] * vectors[(from + r) * size + k];
        multiply(size, rows, wide, transposed(vectors + from * size, size), scaled, wide, into, wide, 1);
    }
}

static void group_means(const Model *m, Room *room) {
    const Real *decoder = parameter(m, DECODER), *biases = parameter(m, BIASES);
    memset(room->sums, 0, sizeof(Real) * (size_t)m->groups);
    memset(room->means, 0, sizeof(Real) * (size_t)(m->groups * m->size));
    for (int64_t w = 0; w < m->vocabulary; w++) {
        int64_t g = m->group_of_word[w];
        const Real *restrict vector = decoder + w * m->size;
        Real *restrict mean = room->means + g * m->size;
        Real mass = exponential(clamped(biases[w], m->least_log_mass, m->most_log_mass));
        room->masses[w] = mass;
        room->sums[g] += mass;
        for (int64_t k = 0; k < m->size; k++) mean[k] += mass * vector[k];
    }
    for (int64_t g = 0; g < m->groups; g++) {
        Real share = room->sums[g] > 0 ? 1 / room->sums[g] : 0;  /* an empty group */
        for (int64_t k = 0; k < m->size; k++)
            room->numbers[k * m->groups + g] = room->means[g * m->size + k] *= share;
    }
}

/* Returns the mass of the first urn */
Real moments(const Model *m, Room *room) {
    int64_t size = m->size, wide = up(size);
    const Real *log_scales = parameter(m, LOG_SCALES);
    Real total = 0, *shares = room->logits;  /* [V], [G] */
    group_means(m, room);
    for (int64_t g = 0; g < m->groups; g++) {
        room->scales[g] = (Real)exp(log_scales[g]);
        room->group_masses[g] = room->sums[g] * room->scales[g];
        total += room->group_masses[g];
    }
    for (int64_t w = 0; w < m->vocabulary; w++)
        shares[w] = room->masses[w] * room->scales[m->group_of_word[w]] / total;
    outer_sum(size, m->vocabulary, shares, parameter(m, DECODER), room->scaled, room->among);
    memset(room->average, 0, sizeof(Real) * (size_t)size);
    for (int64_t g = 0; g < m->groups; g++) {
        shares[g] = room->group_masses[g] / total;
        for (int64_t k = 0; k < size; k++) room->average[k] += shares[g] * room->means[g * size + k];
    }
    outer_sum(size, m->groups, shares, room->means, room->scaled, room->within);
    for (int64_t i = 0; i < size; i++)
        for (int64_t j = 0; j < size; j++) {
            room->within[i * wide + j] = room->among[i * wide + j] - room->within[i * wide + j];
            room->among[i * wide + j] -= room->average[i] * room->average[j];
        }
    return total;
}

/* Forward */

static int64_t prepare(const Model *m, const Documents *d, Room *room) {
    int64_t columns = up(d->size), n = d->entries;
    for (int64_t c = 0; c < columns; c++) {
        room->starts[c] = c < d->size ? d->starts[c] - d->starts[0] : n;
        room->lengths[c] = c < d->size ? d->lengths[c] : 0;
    }
    room->starts[columns] = n;
    int64_t found = count_groups(columns, m->vocabulary, m->groups, n, room->starts, d->words, d->counts,
                                 m->group_of_word, room->group_starts, room->group_items, room->group_documents,
                                 room->group_counts);
    return found < 0 ? found : 0;
}

/* The slope of log p(X | h) at h = 0, in which a word enters with its effective count */
static void first_slope(const Model *m, const Documents *d, const Room *room, int64_t c, Real worth,
                        Real *restrict slope) {
    int64_t size = m->size;
    const Real *decoder = parameter(m, DECODER);
    for (int64_t k = 0; k < size; k++) slope[k] = -worth * room->average[k];
    for (int64_t e = room->starts[c]; e < room->starts[c + 1]; e++) {
        const Real *restrict row = decoder + d->words[e] * size;
        Real effective = effective_count(room->masses[d->words[e]], d->counts[e]);
        for (int64_t k = 0; k < size; k++) slope[k] += effective * row[k];
    }
    for (int64_t e = room->group_starts[c]; e < room->group_starts[c + 1]; e++) {
        int64_t g = room->group_items[e];
        const Real *restrict row = room->means + g * size;
        Real count = room->group_counts[e];
        Real effective = effective_count(room->group_masses[g], count) - effective_count(room->sums[g], count);
        for (int64_t k = 0; k < size; k++) slope[k] += effective * row[k];
    }
}

/* (I + worth among)^-1 slope for LANES documents */
static void first_steps(const Model *m, int64_t columns, int64_t first, Room *room) {
    int64_t size = m->size, wide = up(size);
    Lanes *matrix = room->matrix, *step = matrix + size * (size + 1) / 2, worth = LOAD(room->worth + first);
    for (int64_t i = 0; i < size; i++) {
        for (int64_t j = 0; j <= i; j++) matrix[i * (i + 1) / 2 + j] = worth * room->among[i * wide + j];
        step[i] = LOAD(room->step + i * columns + first);
    }
    solve_lanes(size, matrix, step);
    for (int64_t i = 0; i < size; i++)
        for (int lane = 0; lane < LANES; lane++)
            room->input[i * columns + first + lane] = clamped(LANE(step[i], lane), -m->most_mean, m->most_mean);
}

/* One Newton step from h = 0 (dcm_decoder.py::newton_step_from_zero), and what else the network reads */
static void start(const Model *m, const Documents *d, Real total, Room *room) {
    int64_t columns = up(d->size), size = m->size;
    for (int64_t c = 0; c < columns; c++) {
        Real length = (Real)log1p(room->lengths[c]) - 4;
        room->worth[c] = effective_count(total, room->lengths[c]);
        first_slope(m, d, room, c, room->worth[c], room->turned);
        for (int64_t k = 0; k < size; k++) room->step[k * columns + c] = room->turned[k];
        room->input[size * columns + c] = length;
        room->input[(size + 1) * columns + c] = (Real)log1p((double)(room->starts[c + 1] - room->starts[c])) - 4;
        room->h[size * columns + c] = clamped(length, -m->most_log_length, m->most_log_length);
        room->h[(size + 1) * columns + c] = 1;
    }
    for (int64_t first = 0; first < columns; first += LANES) first_steps(m, columns, first, room);
}

/* weights [rows, inner] times input [inner, B], and a bias for each row */
static void linear(int64_t rows, int64_t inner, int64_t columns, const Real *weights, const Real *biases,
                   const Real *input, Real *output) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) output[r * columns + c] = biases[r];
    multiply(rows, inner, columns, of_rows(weights, inner), input, columns, output, columns, 1);
}

static void silu(int64_t many, const Real *restrict sums, Real *restrict outputs) {
    for (int64_t i = 0; i < many; i++) outputs[i] = sums[i] * sigmoid(sums[i]);
}

static void network(const Model *m, int64_t columns, Room *room) {
    const Real *input = room->input;
    int64_t inner = m->size + 2, of_layer = m->hidden * columns;
    for (int64_t layer = 0; layer < m->layers; layer++) {
        const Real *const *own = m->parameters + PER_LAYER * layer;
        Real *sums = room->layer_sums + layer * of_layer, *outputs = room->outputs + layer * of_layer;
        linear(m->hidden, inner, columns, own[LAYER_WEIGHTS], own[LAYER_BIASES], input, sums);
        silu(of_layer, sums, outputs);
        input = outputs;
        inner = m->hidden;
    }
    linear(m->size, inner, columns, parameter(m, MEAN_WEIGHTS), parameter(m, MEAN_BIASES), input, room->mean);
    linear(m->size, inner, columns, parameter(m, LOG_STD_WEIGHTS), parameter(m, LOG_STD_BIASES), input, room->log_std);
}

/* The likelihood at room->h: `value`, `group_weights` and, if asked for, the gradients in h, in the log scales and, in
 * their place, in the logits */
void likelihood(const Model *m, const Documents *d, int64_t columns, int with_slopes, Room *room) {
    const Real *decoder = parameter(m, DECODER), *slopes = parameter(m, LENGTHS), *biases = parameter(m, BIASES);
    const Real *restrict lengths = room->h + m->size * columns;
    for (int64_t w = 0; w < m->vocabulary; w++) {
        Real *restrict row = room->logits + w * columns, slope = slopes[w], bias = biases[w];
        for (int64_t c = 0; c < columns; c++) row[c] = bias + slope * lengths[c];
    }
    multiply(m->vocabulary, m->size, columns, of_rows(decoder, m->size), room->h, columns, room->logits, columns, 1);
    urns_within(room->of_urns, columns, m->vocabulary, m->groups, room->scales, m->least_log_mass, m->most_log_mass,
                m->group_of_word, room->starts, d->words, d->counts, room->group_starts, room->group_items,
                room->group_counts, room->lengths, room->logits, room->value, room->group_weights,
                with_slopes ? room->in_log_scales : NULL);
    if (with_slopes)
        multiply(m->size, m->vocabulary, columns, transposed(decoder, m->size), room->logits, columns, room->in_h, columns, 0);
}

/* The sums over groups of their weights, times r r^T + C, times r, and alone; the first as lower triangles. A few rows of
 * r r^T + C at a time, which stay in the L1 cache. */
static void curvatures(const Model *m, int64_t columns, Room *room) {
    int64_t size = m->size, wide = up(size), groups = m->groups, row = 0;
    Real *into = room->curvature;
    for (int64_t c = 0; c < columns; c++) room->worth[c] = 0;
    for (int64_t g = 0; g < groups; g++)
        for (int64_t c = 0; c < columns; c++) room->worth[c] += room->group_weights[g * columns + c];
    for (int64_t i = 0; i < size; i++)
        for (int64_t j = 0; j <= i; j++) {
            const Real *restrict one = room->numbers + i * groups, *restrict other = room->numbers + j * groups;
            Real *restrict square = room->squares + row++ * groups, within = room->within[i * wide + j];
            for (int64_t g = 0; g < groups; g++) square[g] = one[g] * other[g] + within;
            if (row < ROWS && (i < size - 1 || j < i)) continue;
            multiply(row, groups, columns, of_rows(room->squares, groups), room->group_weights, columns, into, columns, 0);
            into += row * columns;
            row = 0;
        }
    multiply(size, groups, columns, of_rows(room->numbers, groups), room->group_weights, columns, room->expected,
             columns, 0);
    for (int64_t c = 0; c < columns; c++) room->worth[c] = clamped(room->worth[c], (Real)1e-12, INFINITY);
}

Lanes *roots_of(const Model *m, Room *room, int64_t first) {
    return room->roots + m->size * (m->size + 1) / 2 * (first / LANES);
}

/* M with M^T M the inverse of the curvature at room->group_weights, [B] lower triangles */
void covariance_roots(const Model *m, int64_t columns, Room *room) {
    curvatures(m, columns, room);
    for (int64_t first = 0; first < columns; first += LANES) {
        load_curvature(columns, m->size, first, LANES, room->curvature, room->expected, room->worth, room->matrix);
        invert_lanes(m->size, m->jitter, room->matrix, roots_of(m, room, first));
    }
}

/* M^T M slope for LANES documents: a Newton step, clamped, into room->step */
void newton_step(const Model *m, int64_t columns, int64_t first, const Real *slope, Room *room) {
    int64_t size = m->size;
    const Lanes *column = roots_of(m, room, first);
    Lanes *restrict along = room->matrix;
    for (int64_t i = 0; i < size; i++) along[i] = (Lanes){0};
    for (int64_t j = 0; j < size; column += size - j, j++) {
        Lanes own = LOAD(slope + j * columns + first);
        for (int64_t i = j; i < size; i++) along[i] += column[i - j] * own;
    }
    column = roots_of(m, room, first);
    for (int64_t j = 0; j < size; column += size - j, j++) {
        Lanes step = {0};
        for (int64_t i = j; i < size; i++) step += column[i - j] * along[i];
        for (int lane = 0; lane < LANES; lane++)
            room->step[j * columns + first + lane] = clamped(LANE(step, lane), -m->most_step, m->most_step);
    }
}

/* The first guess at h: the Newton step from 0 plus the network's correction. Returns 0 or an error code. */
int64_t guess(const Model *m, const Documents *d, Real total, Room *room) {
    int64_t columns = up(d->size), fault = prepare(m, d, room);
    if (fault) return fault;
    start(m, d, total, room);
    network(m, columns, room);
    for (int64_t i = 0; i < m->size * columns; i++) {
        Real said = clamped(room->mean[i], -m->most_mean, m->most_mean);
        room->h[i] = clamped(room->input[i] + said, -m->most_mean, m->most_mean);
        room->stretch[i] = exponential(clamped(room->log_std[i], -m->most_stretch, m->most_stretch));
    }
    return 0;
}
