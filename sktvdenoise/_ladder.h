/* Loops over the members of the ladder, four of them side by side in the lanes of a
   vector: entry i of member l of a block is a[4 * i + l]. The members of a block see
   the same row, so that every operation is one of whole vectors. Symmetric matrices
   are kept as their lower triangles, row after row. */
#ifndef SKTVDENOISE_LADDER_H
#define SKTVDENOISE_LADDER_H

#include <math.h>
#include "_exp.h"

/* All four lanes at once, or one after the other where compilers have no vectors.
   An operation on a vector is that on its lanes: the results are the same. */
#define SKTV_BLOCK 4
#if defined(__GNUC__)
typedef double sktv_v
    __attribute__((vector_size(8 * SKTV_BLOCK), aligned(8), may_alias));
#define SKTV_STEP SKTV_BLOCK
#else
typedef double sktv_v;
#define SKTV_STEP 1
#endif
#define SKTV_AT(a, i) (*(sktv_v *)((a) + SKTV_BLOCK * (i)))
#define SKTV_CONST_AT(a, i) (*(const sktv_v *)((a) + SKTV_BLOCK * (i)))

/* prediction = z'theta, for every block. */
SKTV_LOOP void sktv_block_dot(ptrdiff_t n_blocks, ptrdiff_t p,
                              const double *SKTV_RESTRICT z, const double *theta,
                              double *prediction)
{
    ptrdiff_t block, first, i;
    for (block = 0; block < n_blocks; block++)
        for (first = 0; first < SKTV_BLOCK; first += SKTV_STEP) {
            const double *a = theta + block * SKTV_BLOCK * p + first;
            sktv_v sum = {0.0};
            for (i = 0; i < p; i++)
                sum += SKTV_CONST_AT(a, i) * z[i];
            SKTV_AT(prediction + block * SKTV_BLOCK + first, 0) = sum;
        }
}

/* Kalman filters of coefficients that walk at random: the covariance P grows by q
   (in the first place) and slope_q[l] * drift[i]; then they see the row z with the
   label y, whose noise has the given variance. leverage = z'P z. */
SKTV_LOOP void sktv_kalman(ptrdiff_t n_blocks, ptrdiff_t p,
                           const double *SKTV_RESTRICT z,
                           const double *SKTV_RESTRICT drift, double y, double noise,
                           const double *intercept_q, const double *slope_q,
                           double *theta, double *covariance, double *gain,
                           double *leverage)
{
    ptrdiff_t block, first, i, j;
    for (block = 0; block < n_blocks; block++)
        for (first = 0; first < SKTV_BLOCK; first += SKTV_STEP) {
            const ptrdiff_t at = block * SKTV_BLOCK + first;
            double *SKTV_RESTRICT a = theta + block * SKTV_BLOCK * p + first;
            double *SKTV_RESTRICT matrix =
                covariance + block * SKTV_BLOCK * (p * (p + 1) / 2) + first;
            double *SKTV_RESTRICT g = gain + first;
            const sktv_v grows = SKTV_CONST_AT(slope_q + at, 0);
            sktv_v lever = {0.0}, error = {0.0}, scale;
            double *row = matrix;
            SKTV_AT(row, 0) += SKTV_CONST_AT(intercept_q + at, 0);
            for (i = 0; i < p; i++, row += SKTV_BLOCK * i) {
                const double zi = z[i];
                sktv_v sum = {0.0};
                if (i > 0)
                    SKTV_AT(row, i) += grows * drift[i];
                for (j = 0; j < i; j++) {
                    const sktv_v entry = SKTV_AT(row, j);
                    sum += entry * z[j];
                    SKTV_AT(g, j) += entry * zi;
                }
                SKTV_AT(g, i) = sum + SKTV_AT(row, i) * zi;
            }
            error += y;
            for (i = 0; i < p; i++) {
                lever += SKTV_AT(g, i) * z[i];
                error -= SKTV_AT(a, i) * z[i];
            }
            SKTV_AT(leverage + at, 0) = lever;
            scale = 1.0 / (lever + noise);
            error *= scale;
            row = matrix;
            for (i = 0; i < p; i++, row += SKTV_BLOCK * i) {
                const sktv_v gi = SKTV_AT(g, i);
                const sktv_v k = gi * scale;
                SKTV_AT(a, i) += gi * error;
                for (j = 0; j <= i; j++)
                    SKTV_AT(row, j) -= k * SKTV_AT(g, j);
            }
        }
}

/* matrix C C' = A + ridge[l] * diagonal, C lower triangular, by Cholesky; then
   f = C^-1 u and h = C^-1 b. leverage = f'f, prediction = f'h. `least` keeps pivots
   positive that rounding would make negative. One block. */
SKTV_LOOP void sktv_cholesky(ptrdiff_t p, const double *SKTV_RESTRICT diagonal,
                             const double *SKTV_RESTRICT u, const double *ridge,
                             const double *gram, const double *moment, double *work,
                             double *inverse, double *forward, double *solved,
                             double *leverage, double *prediction)
{
    ptrdiff_t first, i, j, k, l;
    for (first = 0; first < SKTV_BLOCK; first += SKTV_STEP) {
        const double *SKTV_RESTRICT row = gram + first;
        const double *SKTV_RESTRICT b = moment + first;
        double *SKTV_RESTRICT pivots = inverse + first;
        double *SKTV_RESTRICT f = forward + first;
        double *SKTV_RESTRICT h = solved + first;
        double *c = work + first;
        const sktv_v r = SKTV_CONST_AT(ridge + first, 0);
        sktv_v lever = {0.0}, dot = {0.0};
        for (i = 0; i < p; i++, c += SKTV_BLOCK * i, row += SKTV_BLOCK * i) {
            const double *cj = work + first;
            sktv_v pivot = SKTV_CONST_AT(row, i) + r * diagonal[i];
            sktv_v fi = {0.0}, hi = SKTV_CONST_AT(b, i);
            const sktv_v full = pivot;
            fi += u[i];
            for (j = 0; j < i; j++, cj += SKTV_BLOCK * j) {
                sktv_v sum = SKTV_CONST_AT(row, j), other = {0.0};
                for (k = 0; k + 1 < j; k += 2) {
                    sum -= SKTV_AT(c, k) * SKTV_CONST_AT(cj, k);
                    other -= SKTV_AT(c, k + 1) * SKTV_CONST_AT(cj, k + 1);
                }
                if (k < j)
                    sum -= SKTV_AT(c, k) * SKTV_CONST_AT(cj, k);
                sum = (sum + other) * SKTV_AT(pivots, j);
                SKTV_AT(c, j) = sum;
                pivot -= sum * sum;
                fi -= sum * SKTV_AT(f, j);
                hi -= sum * SKTV_AT(h, j);
            }
            for (l = 0; l < SKTV_STEP; l++) {
                const double least = 1e-13 * ((const double *)&full)[l];
                double *at = (double *)&pivot + l;
                *at = 1.0 / sqrt(*at > least ? *at : least);
            }
            SKTV_AT(pivots, i) = pivot;
            fi *= pivot;
            hi *= pivot;
            SKTV_AT(f, i) = fi;
            SKTV_AT(h, i) = hi;
            lever += fi * fi;
            dot += fi * hi;
        }
        SKTV_AT(leverage + first, 0) = lever;
        SKTV_AT(prediction + first, 0) = dot;
    }
}

/* theta = C'^-1 h, for what sktv_cholesky left. One block. */
SKTV_LOOP void sktv_back(ptrdiff_t p, const double *work, const double *inverse,
                         const double *solved, double *theta)
{
    ptrdiff_t first, i, j;
    for (first = 0; first < SKTV_BLOCK; first += SKTV_STEP)
        for (i = p - 1; i >= 0; i--) {
            sktv_v sum = SKTV_CONST_AT(solved + first, i);
            for (j = i + 1; j < p; j++)
                sum -= SKTV_CONST_AT(work + first, j * (j + 1) / 2 + i)
                       * SKTV_AT(theta + first, j);
            SKTV_AT(theta + first, i) = sum * SKTV_CONST_AT(inverse + first, i);
        }
}

/* A = forgetting * A + w u u', b = forgetting * b + w y u, for every block. */
SKTV_LOOP void sktv_forget(ptrdiff_t n_blocks, ptrdiff_t p, double w, double y,
                           const double *SKTV_RESTRICT u, const double *forgetting,
                           double *gram, double *moment)
{
    ptrdiff_t block, first, i, j;
    for (block = 0; block < n_blocks; block++)
        for (first = 0; first < SKTV_BLOCK; first += SKTV_STEP) {
            double *SKTV_RESTRICT row =
                gram + block * SKTV_BLOCK * (p * (p + 1) / 2) + first;
            double *SKTV_RESTRICT b = moment + block * SKTV_BLOCK * p + first;
            const sktv_v keep =
                SKTV_CONST_AT(forgetting + block * SKTV_BLOCK + first, 0);
            for (i = 0; i < p; i++, row += SKTV_BLOCK * i) {
                const double wu = w * u[i];
                SKTV_AT(b, i) = keep * SKTV_AT(b, i) + wu * y;
                for (j = 0; j <= i; j++)
                    SKTV_AT(row, j) = keep * SKTV_AT(row, j) + wu * u[j];
            }
        }
}

/* ln x for positive normal x, relative error below 1e-15: x = m 2^e with m between
   sqrt(1/2) and sqrt(2), and ln m = 2 artanh((m - 1) / (m + 1)) by its series. */
static inline double sktv_log(double x)
{
    int64_t bits, exponent;
    double m, e, s, q, series;
    memcpy(&bits, &x, sizeof bits);
    /* The biased exponent, e + 1023, as the low bits of 2^52 + e + 1023. */
    exponent = (int64_t)(((uint64_t)(bits - 0x3fe6a09e667f3bcdLL + 0x3ff0000000000000LL)
                          >> 52) | 0x4330000000000000ULL);
    memcpy(&e, &exponent, sizeof e);
    e -= 4503599627371519.0;
    bits -= (int64_t)((uint64_t)(bits - 0x3fe6a09e667f3bcdLL) & 0xfff0000000000000ULL);
    memcpy(&m, &bits, sizeof m);
    s = (m - 1.0) / (m + 1.0);
    q = s * s;
    series = 1.0 / 21.0;
    series = series * q + 1.0 / 19.0;
    series = series * q + 1.0 / 17.0;
    series = series * q + 1.0 / 15.0;
    series = series * q + 1.0 / 13.0;
    series = series * q + 1.0 / 11.0;
    series = series * q + 1.0 / 9.0;
    series = series * q + 1.0 / 7.0;
    series = series * q + 1.0 / 5.0;
    series = series * q + 1.0 / 3.0;
    return e * 0.6931471805599453 + (2.0 * s + 2.0 * s * q * series);
}

/* Student's density of the label, its logarithm up to a constant common to all: with
   nu degrees of freedom, around the prediction, of squared scale v / nu: the mean
   square of the errors so far, with a prior, times noise + leverage. Then the squares,
   of errors over the root of noise + leverage, learn: no more than `cap` times what
   there is. */
SKTV_LOOP void sktv_student_density(ptrdiff_t n, double y, double noise, double prior,
                                    double nu, double count, double keep, double cap,
                                    const double *SKTV_RESTRICT prediction,
                                    const double *SKTV_RESTRICT leverage,
                                    double *SKTV_RESTRICT squares,
                                    double *SKTV_RESTRICT density)
{
    const double part = nu / count;
    ptrdiff_t j;
    for (j = 0; j < n; j++) {
        const double error = y - prediction[j];
        const double spread = noise + leverage[j];
        const double v = (squares[j] + prior) * part * spread;
        const double square = error * error / spread;
        const double most = cap * (squares[j] + prior);
        const double tail = sktv_log(v + error * error);
        density[j] = 0.5 * (nu * sktv_log(v) - (nu + 1.0) * tail);
        squares[j] = keep * squares[j] + (square < most ? square : most);
    }
}

/* density = -rate * (y - prediction)^2. */
SKTV_LOOP void sktv_gauss_density(ptrdiff_t n, double y, double rate,
                                  const double *SKTV_RESTRICT prediction,
                                  double *SKTV_RESTRICT density)
{
    ptrdiff_t j;
    for (j = 0; j < n; j++) {
        const double error = y - prediction[j];
        const double exponent = rate * (error * error);
        density[j] = -(exponent < 1e300 ? exponent : 1e300);
    }
}

/* prediction drawn in to [low, high]. */
SKTV_LOOP void sktv_clip(ptrdiff_t n, double low, double high,
                         double *SKTV_RESTRICT prediction)
{
    ptrdiff_t j;
    for (j = 0; j < n; j++) {
        const double above = prediction[j] > low ? prediction[j] : low;
        prediction[j] = above < high ? above : high;
    }
}

/* Fixed share: weights move a part `share` of the way to the prior; then they are
   multiplied by exp(density - largest) and normalised. Where all products underflow,
   nothing is known. */
SKTV_LOOP void sktv_share_prior(ptrdiff_t n, double share, double largest,
                                const double *SKTV_RESTRICT density,
                                const double *SKTV_RESTRICT prior,
                                double *SKTV_RESTRICT weight)
{
    double total, unused, scale;
    ptrdiff_t j;
    for (j = 0; j < n; j++) {
        const double shared = (1.0 - share) * weight[j] + share * prior[j];
        weight[j] = shared * sktv_exp(density[j] - largest);
    }
    sktv_sums(n, weight, weight, &total, &unused);
    scale = total > 0.0 ? 1.0 / total : 0.0;
    for (j = 0; j < n; j++)
        weight[j] = total > 0.0 ? weight[j] * scale : prior[j];
}

#endif
