/* Inference: q(h | X), after more Newton steps with the same curvature (nvdm_dcm.py::_climb). Results do not depend on
 * a document's neighbours.
 */
#include "model.h"

#define AT_ONCE 64  /* documents whose arrays fit in the L2 cache */

/* log p(h, X) at room->h, up to a constant, in place of room->value; and its slope, if there is one, in that of in_h */
static void add_prior(int64_t size, int64_t columns, int with_slopes, Room *room) {
    for (int64_t k = 0; k < size; k++)
        for (int64_t c = 0; c < columns; c++) {
            Real h = room->h[k * columns + c];
            room->value[c] -= (Real)0.5 * h * h;
            if (with_slopes) room->in_h[k * columns + c] -= h;
        }
}

/* Whether room->h is better than the best so far. Near the maximum values differ by less than their rounding error; the
 * mean slope along the step still gives the sign, and without it the step is taken. */
static int is_better(int64_t size, int64_t columns, int64_t c, Real rounding, int with_slopes, const Room *room) {
    Real gain = room->value[c] - room->best_value[c], doubt = rounding * (Real)fabs(room->best_value[c]);
    if (!with_slopes) return gain > -doubt;
    if (!((Real)fabs(gain) <= doubt)) return gain > 0;
    Real rise = 0;
    for (int64_t i = c; i < size * columns; i += columns)
        rise += (room->in_h[i] + room->best_slope[i]) * (room->h[i] - room->best_h[i]);
    return rise > 0;
}

static void keep(const Model *m, int64_t columns, int64_t c, int with_slopes, Room *room) {
    room->best_value[c] = room->value[c];
    for (int64_t i = c; i < m->size * columns; i += columns) room->best_h[i] = room->h[i];
    if (!with_slopes) return;
    for (int64_t i = c; i < m->size * columns; i += columns) room->best_slope[i] = room->in_h[i];
    for (int64_t i = c; i < m->groups * columns; i += columns) room->best_weights[i] = room->group_weights[i];
}

static void climb(const Model *m, const Inference *q, const Documents *d, int64_t columns, Room *room) {
    const Real *gates = parameter(m, STEP_GATES);
    for (int64_t step = 0; step < q->steps; step++) {
        int with_slopes = q->roots || step < q->steps - 1;
        for (int64_t first = 0; first < columns; first += LANES) newton_step(m, columns, first, room->best_slope, room);
        for (int64_t i = 0; i < m->size * columns; i++)
            room->h[i] = clamped(room->best_h[i] + sigmoid(gates[i / columns]) * room->step[i], -m->most_mean,
                                 m->most_mean);
        likelihood(m, d, columns, with_slopes, room);
        add_prior(m->size, columns, with_slopes, room);
        for (int64_t c = 0; c < columns; c++)
            if (is_better(m->size, columns, c, q->rounding, with_slopes, room)) keep(m, columns, c, with_slopes, room);
    }
}

static void write_posterior(const Model *m, const Inference *q, const Documents *d, int64_t from, Room *room) {
    int64_t columns = up(d->size), size = m->size;
    for (int64_t c = 0; c < d->size; c++)
        for (int64_t k = 0; k < size; k++) {
            q->mean[(from + c) * size + k] = room->best_h[k * columns + c];
            q->stretch[(from + c) * size + k] = room->stretch[k * columns + c];
        }
    if (!q->roots) return;
    memcpy(room->group_weights, room->best_weights, sizeof(Real) * (size_t)(m->groups * columns));
    covariance_roots(m, columns, room);
    for (int64_t first = 0; first < d->size; first += LANES) {
        int64_t many = d->size - first < LANES ? d->size - first : LANES;
        store_roots(size, many, roots_of(m, room, first), q->roots + (from + first) * size * size);
    }
}

static int64_t infer_some(const Model *m, const Inference *q, const Documents *d, int64_t from, Real total, Room *room) {
    int64_t columns = up(d->size), fault = guess(m, d, total, room);
    if (fault) return fault;
    if (!q->steps && !q->roots) {  /* the guess alone needs neither the likelihood nor the curvature */
        memcpy(room->best_h, room->h, sizeof(Real) * (size_t)(m->size * columns));
        write_posterior(m, q, d, from, room);
        return 0;
    }
    likelihood(m, d, columns, 1, room);
    covariance_roots(m, columns, room);
    add_prior(m->size, columns, 1, room);
    for (int64_t c = 0; c < columns; c++) keep(m, columns, c, 1, room);
    climb(m, q, d, columns, room);
    write_posterior(m, q, d, from, room);
    return 0;
}

/* Fills in q->mean, q->stretch and q->roots, some documents at a time, so that everything fits in the L2 cache.
 * Returns 0 or an error code. */
EXPORTED int64_t infer(const Model *m, const Inference *q) {
    Room room;
    const Documents *d = &q->documents;
    int64_t most = 0, fault = 0;
    for (int64_t from = 0; from < d->size; from += AT_ONCE) {
        int64_t to = from + AT_ONCE < d->size ? from + AT_ONCE : d->size, entries = d->starts[to] - d->starts[from];
        most = entries > most ? entries : most;
    }
    char *start_of_room = aligned_alloc(ALIGNMENT, divide(NULL, &room, m, AT_ONCE, most, 0));
    if (!start_of_room) return NO_MEMORY;
    divide(start_of_room, &room, m, AT_ONCE, most, 0);
    Real total = moments(m, &room);
    for (int64_t from = 0; !fault && from < d->size; from += AT_ONCE) {
        int64_t to = from + AT_ONCE < d->size ? from + AT_ONCE : d->size, skipped = d->starts[from] - d->starts[0];
        Documents some = {to - from, d->starts[to] - d->starts[from], d->starts + from, d->words + skipped,
                          d->counts + skipped, d->lengths + from};
        fault = infer_some(m, q, &some, from, total, &room);
    }
    aligned_free(start_of_room);
    return fault;
}
