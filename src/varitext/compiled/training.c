/* Training: the bound of each document of a part of a batch, and the gradient of their weighted sum in all parameters,
 * by hand. Each thread has a part, and waits for none of Python's locks. Autograd gives the same.
 */
#include "model.h"

static Real *gradient(const Model *m, const Part *p, int which) { return p->gradients[PER_LAYER * m->layers + which]; }

/* M^T noise of each sample, and the diagonals of M^T M and of M, for LANES documents */
static void spread(const Model *m, const Part *p, int64_t columns, int64_t first, Room *room) {
    int64_t size = m->size, documents = p->documents.size;
    const Lanes *column = roots_of(m, room, first);
    Lanes *restrict noise = room->matrix;
    for (int64_t j = 0; j < size; column += size - j, j++) {
        Lanes variance = {0};
        for (int64_t i = j; i < size; i++) variance += column[i - j] * column[i - j];
        STORE(room->variance + j * columns + first, variance);
        STORE(room->diagonal + j * columns + first, column[0]);
    }
    for (int64_t s = 0; s < p->samples; s++) {
        for (int64_t i = 0; i < size; i++)
            for (int lane = 0; lane < LANES; lane++)
                LANE(noise[i], lane) = first + lane < documents
                                     ? p->noise[(s * documents + first + lane) * size + i] : 0;
        column = roots_of(m, room, first);
        for (int64_t j = 0; j < size; column += size - j, j++) {
            Lanes drawn = {0};
            for (int64_t i = j; i < size; i++) drawn += column[i - j] * noise[i];
            STORE(room->drawn + (s * size + j) * columns + first, drawn);
        }
    }
}

/* q(h | X) in training: a Newton step from the guess; and draws. The mean is clamped where it is used. */
static void posterior(const Model *m, const Part *p, int64_t columns, Room *room) {
    const Real *gates = parameter(m, STEP_GATES);
    covariance_roots(m, columns, room);
    for (int64_t i = 0; i < m->size * columns; i++) room->in_h[i] -= room->h[i];
    for (int64_t first = 0; first < columns; first += LANES) {
        newton_step(m, columns, first, room->in_h, room);
        spread(m, p, columns, first, room);
    }
    for (int64_t k = 0; k < m->size; k++) {
        Real gate = sigmoid(gates[k]);
        for (int64_t i = k * columns; i < (k + 1) * columns; i++) room->q_mean[i] = room->h[i] + gate * room->step[i];
    }
}

/* Backward: gradients of the sum of weights times bounds */

/* [inner, B] as [B, inner + padding], in blocks that fit in the L1 cache */
static void turn(int64_t inner, int64_t columns, const Real *restrict input, Real *restrict turned) {
    int64_t wide = up(inner);
    for (int64_t k = 0; k < wide; k += LANES)
        for (int64_t c = 0; c < columns; c++)
            for (int64_t lane = 0; lane < LANES; lane++)
                turned[c * wide + k + lane] = k + lane < inner ? input[(k + lane) * columns + c] : 0;
}

static void in_decoder(const Model *m, const Part *p, int64_t columns, Room *room, Real share, int add) {
    int64_t size = m->size, wide = size + 2, room_of_row = up(wide);
    Real *decoder = gradient(m, p, DECODER), *lengths = gradient(m, p, LENGTHS), *biases = gradient(m, p, BIASES);
    Real *scales = gradient(m, p, LOG_SCALES);
    turn(wide, columns, room->h, room->turned);
    for (int64_t c = 0; c < columns; c++)
        for (int64_t k = 0; k < wide; k++) room->turned[c * room_of_row + k] *= room->weights[c] * share;
    for (int64_t w = 0; w < m->vocabulary; w += WORDS) {
        int64_t many = m->vocabulary - w < WORDS ? m->vocabulary - w : WORDS;
        multiply(many, columns, wide, of_rows(room->logits + w * columns, columns), room->turned, room_of_row,
                 room->rows, wide, 0);
        for (int64_t r = 0; r < many; r++) {
            const Real *restrict row = room->rows + r * wide;
            Real *restrict into = decoder + (w + r) * size;
            for (int64_t k = 0; k < size; k++) into[k] = add ? into[k] + row[k] : row[k];
            lengths[w + r] = add ? lengths[w + r] + row[size] : row[size];
            biases[w + r] = add ? biases[w + r] + row[size + 1] : row[size + 1];
        }
    }
    for (int64_t g = 0; g < m->groups; g++) {
        Real sum = 0;
        for (int64_t c = 0; c < columns; c++) sum += room->in_log_scales[g * columns + c] * room->weights[c];
        scales[g] = (add ? scales[g] : 0) + share * sum;
    }
}

/* The bounds of one draw, and their gradients in the decoder and in q */
static void draw(const Model *m, const Part *p, int64_t columns, Room *room, int64_t sample) {
    int64_t size = m->size;
    Real share = 1 / (Real)p->samples;
    const Real *drawn = room->drawn + sample * size * columns;
    for (int64_t i = 0; i < size * columns; i++)
        room->h[i] = clamped(room->q_mean[i], -m->most_mean, m->most_mean) + room->stretch[i] * drawn[i];
    likelihood(m, &p->documents, columns, 1, room);
    in_decoder(m, p, columns, room, share, sample > 0);
    for (int64_t c = 0; c < p->documents.size; c++)
        p->log_likelihood[c] = (sample ? p->log_likelihood[c] : 0) + share * room->value[c];
    for (int64_t k = 0; k < size; k++)
        for (int64_t c = 0; c < columns; c++) {
            int64_t i = k * columns + c;
            Real in_h = room->in_h[i] * room->weights[c] * share;
            room->in_mean[i] = (sample ? room->in_mean[i] : 0) + in_h;
            room->in_stretch[i] = (sample ? room->in_stretch[i] : 0) + in_h * drawn[i];
        }
}

/* The log determinant of a document's M; one logarithm for several numbers */
static Real log_volume(int64_t size, int64_t columns, const Real *diagonal) {
    double sum = 0, product = 1;
    for (int64_t k = 0; k < size; k++) {
        product *= diagonal[k * columns];
        if (k % 8 == 7 || k == size - 1) {
            sum += log(product);
            product = 1;
        }
    }
    return (Real)sum;
}

/* KL(q || p), as `full_gaussian_kl`; and back through q to the network's outputs, in place of in_mean and in_stretch */
static void in_posterior(const Model *m, const Part *p, int64_t columns, Room *room) {
    const Real *gates = parameter(m, STEP_GATES);
    Real *in_gates = gradient(m, p, STEP_GATES);
    for (int64_t c = 0; c < p->documents.size; c++) p->kl[c] = -log_volume(m->size, columns, room->diagonal + c);
    for (int64_t k = 0; k < m->size; k++) {
        Real gate = sigmoid(gates[k]), in_gate = 0;
        for (int64_t c = 0; c < columns; c++) {
            int64_t i = k * columns + c;
            Real mean = clamped(room->q_mean[i], -m->most_mean, m->most_mean), stretch = room->stretch[i];
            Real by = room->weights[c] * p->kl_weight, variance = room->variance[i], said = room->mean[i];
            Real in_mean = room->in_mean[i] - by * mean;
            Real in_stretch = room->in_stretch[i] - by * (stretch * variance - 1 / stretch);
            if (c < p->documents.size)
                p->kl[c] += (Real)0.5 * (stretch * stretch * variance + mean * mean - 1)
                          - clamped(room->log_std[i], -m->most_stretch, m->most_stretch);
            if (!inside(room->q_mean[i], -m->most_mean, m->most_mean)) in_mean = 0;
            in_gate += in_mean * room->step[i];
            Real guess = room->input[i] + clamped(said, -m->most_mean, m->most_mean);
            int moved = inside(guess, -m->most_mean, m->most_mean) && inside(said, -m->most_mean, m->most_mean);
            Real log_std = room->log_std[i];
            int stretched = inside(log_std, -m->most_stretch, m->most_stretch)
                         && inside(log_std, m->least_log_std, m->most_log_std);
            room->in_mean[i] = moved ? in_mean : 0;
            room->in_stretch[i] = stretched ? in_stretch * stretch : 0;
        }
        in_gates[k] = in_gate * gate * (1 - gate);
    }
}

/* Gradients of a linear layer: [rows, inner] from that of its output, [rows, B], and its turned input */
static void in_linear(int64_t rows, int64_t inner, int64_t columns, const Real *in_output,
                      const Real *turned, Real *weights, Real *biases) {
    multiply(rows, columns, inner, of_rows(in_output, columns), turned, up(inner), weights, inner, 0);
    for (int64_t r = 0; r < rows; r++) {
        Lanes sums = {0};
        for (int64_t c = 0; c < columns; c += LANES) sums += LOAD(in_output + r * columns + c);
        biases[r] = 0;
        for (int lane = 0; lane < LANES; lane++) biases[r] += LANE(sums, lane);
    }
}

static void in_silu(int64_t many, const Real *restrict sums, const Real *restrict in_outputs,
                    Real *restrict in_sums) {
    for (int64_t i = 0; i < many; i++) {
        Real share = sigmoid(sums[i]);
        in_sums[i] = in_outputs[i] * share * (1 + sums[i] * (1 - share));
    }
}

static void in_network(const Model *m, const Part *p, int64_t columns, Room *room) {
    int64_t size = m->size, hidden = m->hidden, of_layer = hidden * columns;
    int64_t inner = m->layers ? hidden : size + 2;
    const Real *input = m->layers ? room->outputs + (m->layers - 1) * of_layer : room->input;
    turn(inner, columns, input, room->turned);
    in_linear(size, inner, columns, room->in_mean, room->turned, gradient(m, p, MEAN_WEIGHTS),
              gradient(m, p, MEAN_BIASES));
    in_linear(size, inner, columns, room->in_stretch, room->turned, gradient(m, p, LOG_STD_WEIGHTS),
              gradient(m, p, LOG_STD_BIASES));
    if (!m->layers) return;
    multiply(hidden, size, columns, transposed(parameter(m, MEAN_WEIGHTS), hidden), room->in_mean, columns,
             room->in_outputs, columns, 0);
    multiply(hidden, size, columns, transposed(parameter(m, LOG_STD_WEIGHTS), hidden), room->in_stretch, columns,
             room->in_outputs, columns, 1);
    for (int64_t layer = m->layers - 1; layer >= 0; layer--) {
        const Real *const *own = m->parameters + PER_LAYER * layer;
        Real *const *into = p->gradients + PER_LAYER * layer;
        in_silu(of_layer, room->layer_sums + layer * of_layer, room->in_outputs, room->in_sums);
        inner = layer ? hidden : size + 2;
        input = layer ? room->outputs + (layer - 1) * of_layer : room->input;
        turn(inner, columns, input, room->turned);
        in_linear(hidden, inner, columns, room->in_sums, room->turned, into[LAYER_WEIGHTS], into[LAYER_BIASES]);
        if (layer)
            multiply(hidden, hidden, columns, transposed(own[LAYER_WEIGHTS], hidden), room->in_sums, columns,
                     room->in_outputs, columns, 0);
    }
}

/* The bytes of memory that `gradients_of_part` needs */
EXPORTED int64_t room_of_part(const Model *m, const Part *p) {
    Room room;
    return (int64_t)divide(NULL, &room, m, p->documents.size, p->documents.entries, p->samples) + ALIGNMENT;
}

/* Fills in p->gradients, p->log_likelihood and p->kl; overwrites `memory`. Returns 0 or an error code. */
EXPORTED int64_t gradients_of_part(const Model *m, const Part *p, char *memory) {
    Room room;
    const Documents *d = &p->documents;
    int64_t columns = up(d->size);
    divide(memory, &room, m, d->size, d->entries, p->samples);
    for (int64_t c = 0; c < columns; c++) room.weights[c] = c < d->size ? p->weights[c] : 0;
    int64_t fault = guess(m, d, moments(m, &room), &room);
    if (fault) return fault;
    likelihood(m, d, columns, 1, &room);
    posterior(m, p, columns, &room);
    for (int64_t sample = 0; sample < p->samples; sample++) draw(m, p, columns, &room, sample);
    in_posterior(m, p, columns, &room);
    in_network(m, p, columns, &room);
    return 0;
}
