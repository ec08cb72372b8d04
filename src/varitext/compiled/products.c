/* Matrix products of small matrices: faster than a library's for a few columns, and each thread makes its own. */
#include "model.h"

#define ROWS 6  /* of a tile: with LANES columns, as many sums as registers of AVX2 hold */
#define INNER 256  /* terms of the sums before the next: LANES columns of so many rows stay in the first cache */

INLINED void tile(int rows, int64_t inner, const Real *a, int64_t a_row, int64_t a_inner, const Real *b, int64_t b_row,
                  Real *c, int64_t c_row, int add, int64_t columns) {
    Lanes sums[ROWS];
    for (int r = 0; r < rows; r++) sums[r] = (Lanes){0};
    for (int64_t k = 0; k < inner; k++) {
        Lanes along = LOAD(b + k * b_row);
        for (int r = 0; r < rows; r++) sums[r] += a[r * a_row + k * a_inner] * along;
    }
    for (int r = 0; r < rows; r++) {
        Real *place = c + r * c_row;
        Lanes before = {0};
        if (columns >= LANES) {
            if (add) before = LOAD(place);
            STORE(place, before + sums[r]);
        } else {
            if (add) memcpy(&before, place, sizeof(Real) * (size_t)columns);
            before += sums[r];
            memcpy(place, &before, sizeof(Real) * (size_t)columns);
        }
    }
}

/* C = A B, or C += A B, for A [rows, inner], B [inner, columns], C [rows, columns]. Rows of B have room for a multiple
 * of LANES numbers. */
EVERY_CPU void multiply(int64_t rows, int64_t inner, int64_t columns, Factor a, const Real *b, int64_t b_row,
                               Real *c, int64_t c_row, int add) {
    for (int64_t from = 0; from < inner; from += INNER, add = 1) {
        int64_t terms = inner - from < INNER ? inner - from : INNER;
        for (int64_t r = 0; r < rows; r += ROWS)
            for (int64_t column = 0; column < columns; column += LANES) {
                const Real *left = a.numbers + r * a.row + from * a.inner, *right = b + from * b_row + column;
                Real *into = c + r * c_row + column;
                int64_t rest = columns - column;
#define TILE(number) tile(number, terms, left, a.row, a.inner, right, b_row, into, c_row, add, rest)
                switch (rows - r) {
                    case 1: TILE(1); break;
                    case 2: TILE(2); break;
                    case 3: TILE(3); break;
                    case 4: TILE(4); break;
                    case 5: TILE(5); break;
                    default: TILE(6);
                }
#undef TILE
            }
    }
}

Factor of_rows(const Real *numbers, int64_t columns) { return (Factor){numbers, columns, 1}; }

Factor transposed(const Real *numbers, int64_t columns) { return (Factor){numbers, 1, columns}; }
