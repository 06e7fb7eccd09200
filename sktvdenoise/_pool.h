/* Loops over members and experts of the pool, in straight-line C that compilers
   vectorise: no branch and no call inside. */
#ifndef SKTVDENOISE_POOL_H
#define SKTVDENOISE_POOL_H

#include <math.h>
#include "_exp.h"

#define SKTV_NEWBORN_VARIANCE 25.0
#define SKTV_SLOPE_VARIANCE 0.1

/* Features of a regression, at most; two more columns hold x and the moment. */
#define SKTV_FEATURES 14
#define SKTV_COLUMNS (SKTV_FEATURES + 2)

/* factor = (1 + (y - p)^2 / c)^-2. */
SKTV_LOOP void sktv_student(ptrdiff_t n, double y, double c,
                                const double *SKTV_RESTRICT p,
                                double *SKTV_RESTRICT factor)
{
    const double inverse = 1.0 / c;
    ptrdiff_t j;
    for (j = 0; j < n; j++) {
        const double error = y - p[j];
        const double q = 1.0 + error * error * inverse;
        factor[j] = 1.0 / (q * q);
    }
}

/* Fixed share: weight *= factor, normalised; then all move a part `share` of the
   way to the uniform weights. Where all underflow, nothing is known any more. */
SKTV_LOOP void sktv_share(ptrdiff_t n, double share,
                              const double *SKTV_RESTRICT factor,
                              double *SKTV_RESTRICT weight)
{
    double total, unused, scale;
    ptrdiff_t j;
    for (j = 0; j < n; j++)
        weight[j] *= factor[j];
    sktv_sums(n, weight, weight, &total, &unused);
    if (!(total > 0.0))
        share = 1.0;
    scale = share < 1.0 ? (1.0 - share) / total : 0.0;
    share /= (double)n;
    for (j = 0; j < n; j++)
        weight[j] = weight[j] * scale + share;
}

/* ML-Poly: with the gap g = x - p, drawn in to `most`, and 0 if not above `least`,
   the regret of x against p grows by r = slope * g - curvature * (gap^2 - free)_+,
   its variance by r^2 + step. */
SKTV_LOOP void sktv_ml_poly(ptrdiff_t n, double x, double slope, double step,
                                double least, double most, double curvature,
                                double free, const double *SKTV_RESTRICT p,
                                double *SKTV_RESTRICT regret,
                                double *SKTV_RESTRICT variance)
{
    ptrdiff_t j;
    for (j = 0; j < n; j++) {
        const double gap = x - p[j];
        const double above = gap > -most ? gap : -most;
        const double within = above < most ? above : most;
        const double near = fabs(gap) > least ? within : 0.0;
        const double far = gap * gap - free;
        const double r = slope * near - curvature * (far > 0.0 ? far : 0.0);
        regret[j] += r;
        variance[j] += r * r + step;
    }
}

/* What sktv_gaussian below needs:
   exponent = -(y - m)^2 / (2 s (noise + v)), norm = (noise + v)^-1/2. */
SKTV_LOOP void sktv_exponents(ptrdiff_t n, double y, double noise, double s,
                                  const double *SKTV_RESTRICT m,
                                  const double *SKTV_RESTRICT v,
                                  double *SKTV_RESTRICT exponent,
                                  double *SKTV_RESTRICT norm)
{
    ptrdiff_t j;
    for (j = 0; j < n; j++) {
        const double error = y - m[j];
        const double d = noise + v[j];
        const double half = 0.5 * error * error / (s * d);
        exponent[j] = -(half < 1e300 ? half : 1e300);
        norm[j] = 1.0 / sqrt(d);
    }
}

/* Predictive densities of y, up to a common factor: Gaussian with means m and
   variances s (noise + v). `density` comes in as the exponents. */
SKTV_LOOP void sktv_gaussian(ptrdiff_t n, double largest,
                                 const double *SKTV_RESTRICT norm,
                                 double *SKTV_RESTRICT density)
{
    ptrdiff_t j;
    for (j = 0; j < n; j++)
        density[j] = sktv_exp(density[j] - largest) * norm[j];
}

/* The same for a density with Student's tails:
   (1 + (y - m)^2 / (2 s (noise + v)))^-2 (noise + v)^-1/2. */
SKTV_LOOP void sktv_heavy(ptrdiff_t n, double y, double noise, double s,
                              const double *SKTV_RESTRICT m,
                              const double *SKTV_RESTRICT v,
                              double *SKTV_RESTRICT density)
{
    ptrdiff_t j;
    for (j = 0; j < n; j++) {
        const double error = y - m[j];
        const double d = noise + v[j];
        const double q = 1.0 + error * error / (2.0 * s * d);
        density[j] = 1.0 / (q * q * sqrt(d));
    }
}

/* sums[k] += d * past[k]. */
SKTV_LOOP void sktv_products(ptrdiff_t n, double d,
                                 const double *SKTV_RESTRICT past,
                                 double *SKTV_RESTRICT sums)
{
    ptrdiff_t k;
    for (k = 0; k < n; k++)
        sums[k] += d * past[k];
}

/* gram = forgetting * gram + w x x', upper triangle, rows of SKTV_COLUMNS. */
SKTV_LOOP void sktv_gram(ptrdiff_t d, double w, double forgetting,
                             const double *SKTV_RESTRICT x,
                             double *SKTV_RESTRICT gram)
{
    ptrdiff_t i, j;
    for (j = 0; j < d; j++) {
        const double f = w * x[j];
        for (i = j; i < d; i++)
            gram[j * SKTV_COLUMNS + i] =
                forgetting * gram[j * SKTV_COLUMNS + i] + f * x[i];
    }
}

/* x' (gram + present x x' + penalty I)^-1 moment by Gaussian elimination of the
   upper triangle, with x and moment as further columns. Whole pairs of columns
   are eliminated, so that the inner loop has no odd end; what that writes below
   the diagonal is never read. */
SKTV_LOOP double sktv_ridge(ptrdiff_t d, double penalty, double present,
                                const double *SKTV_RESTRICT gram,
                                const double *SKTV_RESTRICT x,
                                const double *SKTV_RESTRICT moment)
{
    double a[SKTV_FEATURES][SKTV_COLUMNS];
    double diagonal[SKTV_FEATURES];
    double dot = 0.0;
    ptrdiff_t i, j, k;
    for (j = 0; j < d; j++) {
        const double f = present * x[j];
        for (i = 0; i < SKTV_FEATURES; i++)
            a[j][i] = gram[j * SKTV_COLUMNS + i] + f * x[i];
        a[j][j] += penalty;
        a[j][SKTV_FEATURES] = x[j];
        a[j][SKTV_FEATURES + 1] = moment[j];
        diagonal[j] = a[j][j];
    }
    for (j = 0; j < d; j++) {
        /* Rounding must not make a pivot negative. */
        const double least = 1e-12 * diagonal[j];
        const double pivot = a[j][j] > least ? a[j][j] : least;
        const double inverse = 1.0 / pivot;
        for (k = j + 1; k < d; k++) {
            const double f = a[j][k] * inverse;
            for (i = k & ~(ptrdiff_t)1; i < SKTV_COLUMNS; i += 2) {
                a[k][i] -= f * a[j][i];
                a[k][i + 1] -= f * a[j][i + 1];
            }
        }
        dot += a[j][SKTV_FEATURES] * a[j][SKTV_FEATURES + 1] * inverse;
    }
    return dot;
}

#endif
