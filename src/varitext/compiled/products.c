/* Matrix products of small matrices: faster than BLAS for a few columns, and each thread computes its own. */
#include "model.h"

#define INNER (LANES > 8 ? 128 : 256)  /* terms that are summed before moving on: that many rows of two registers fit
                                        * in the L1 cache */
#define BLOCK (16 * ROWS)  /* rows of A that stay in the cache while they meet all columns of B */

/* Sums of a tile of `rows` rows and `wide` registers of columns; `columns` of them exist */
INLINED void tile(int rows, int wide, int64_t inner, const Real *a, int64_t a_row, int64_t a_inner, const Real *b,
                  int64_t b_row, Real *c, int64_t c_row, int add, int64_t columns) {
    Lanes sums[ROWS][2];
    for (int r = 0; r < rows; r++)
        for (int w = 0; w < wide; w++) sums[r][w] = (Lanes){0};
    for (int64_t k = 0; k < inner; k++) {
        Lanes along[2];
        for (int w = 0; w < wide; w++) along[w] = LOAD(b + k * b_row + w * LANES);
        for (int r = 0; r < rows; r++)
            for (int w = 0; w < wide; w++) sums[r][w] += a[r * a_row + k * a_inner] * along[w];
    }
    for (int r = 0; r < rows; r++)
        for (int w = 0; w < wide; w++) {
            Real *place = c + r * c_row + w * LANES;
            size_t exist = columns - w * LANES < LANES ? (size_t)(columns - w * LANES) : (size_t)LANES;
            Lanes before = {0};
            if (exist == (size_t)LANES) {
                if (add) before = LOAD(place);
                STORE(place, before + sums[r][w]);
            } else {
                if (add) memcpy(&before, place, sizeof(Real) * exist);
                before += sums[r][w];
                memcpy(place, &before, sizeof(Real) * exist);
            }
        }
}

INLINED void tiles(int wide, int64_t rows, int64_t inner, Factor a, const Real *b, int64_t b_row, Real *c,
                   int64_t c_row, int add, int64_t columns) {
    for (int64_t r = 0; r < rows; r += ROWS) {
        const Real *left = a.numbers + r * a.row;
        Real *into = c + r * c_row;
#define TILE(number) tile(number, wide, inner, left, a.row, a.inner, b, b_row, into, c_row, add, columns)
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

/* C = A B, or C += A B, for A [rows, inner], B [inner, columns], C [rows, columns]. Rows of B have room for a multiple
 * of LANES numbers. */
void multiply(int64_t rows, int64_t inner, int64_t columns, Factor a, const Real *b, int64_t b_row, Real *c,
              int64_t c_row, int add) {
    for (int64_t from = 0; from < inner; from += INNER, add = 1)
        for (int64_t r = 0; r < rows; r += BLOCK) {
            int64_t terms = inner - from < INNER ? inner - from : INNER, block = rows - r < BLOCK ? rows - r : BLOCK;
            Factor some = {a.numbers + r * a.row + from * a.inner, a.row, a.inner};
            for (int64_t column = 0; column < columns; column += 2 * LANES) {
                const Real *right = b + from * b_row + column;
                Real *into = c + r * c_row + column;
                int64_t rest = columns - column;
                if (rest > LANES)
                    tiles(2, block, terms, some, right, b_row, into, c_row, add, rest);
                else
                    tiles(1, block, terms, some, right, b_row, into, c_row, add, rest);
            }
        }
}

Factor of_rows(const Real *numbers, int64_t columns) { return (Factor){numbers, columns, 1}; }

Factor transposed(const Real *numbers, int64_t columns) { return (Factor){numbers, 1, columns}; }
