/* Loops over members of the adaptive generalised linear model, in straight-line C
   that compilers vectorise: SKTV_LANES members at a time, which see the same
   features.

   Of each group of members, coefficients are kept as [coefficient][lane] and the
   lower triangle of the covariances, row by row, as [i (i + 1) / 2 + j][lane]. */
#ifndef SKTVDENOISE_LAPLACE_H
#define SKTVDENOISE_LAPLACE_H

#include <math.h>
#include "_pool.h"

#define SKTV_LANES 4

/* Steps to a mode, at most. Two to five are enough but for extreme labels. */
#define SKTV_ROUNDS 100

/* Logistic: no smaller probability is predicted, no larger logarithm of odds learned. */
#define SKTV_PROBABILITY 1e-6
#define SKTV_SUREST 100.0

/* Poisson: logarithm of how far below what was seen rates may be; factor above. */
#define SKTV_REACH 5.0
#define SKTV_WIDTH 3.0

/* Poisson: how far above the prediction labels are learned, in unit deviances. */
#define SKTV_CREDIBLE 25.0

/* Weight of a guard in the beginning. */
#define SKTV_GUARD 0.01

/* exp for any finite x; above exp(300) nothing differs. */
static inline double sktv_exp_any(double x)
{
    return sktv_exp(x < 300.0 ? x : 300.0);
}

/* Mean A'(u) of the label and curvature A''(u), logistic (0) or Poisson (1). */
static inline double sktv_mean(int poisson, double u, double *curvature)
{
    if (poisson) {
        *curvature = sktv_exp_any(u);
        return *curvature;
    } else {
        const double small = sktv_exp(-fabs(u));
        const double part = 1.0 / (1.0 + small);
        *curvature = small * part * part;
        return u >= 0.0 ? part : small * part;
    }
}

/* m = z' theta. */
SKTV_LOOP void sktv_dot(ptrdiff_t p, const double *SKTV_RESTRICT z,
                        const double *SKTV_RESTRICT theta,
                        double *SKTV_RESTRICT m)
{
    double sum[SKTV_LANES] = {0.0};
    ptrdiff_t i, l;
    for (i = 0; i < p; i++)
        for (l = 0; l < SKTV_LANES; l++)
            sum[l] += z[i] * theta[i * SKTV_LANES + l];
    for (l = 0; l < SKTV_LANES; l++)
        m[l] = sum[l];
}

/* g = P z and v = z' g. */
SKTV_LOOP void sktv_spread(ptrdiff_t p, const double *SKTV_RESTRICT z,
                           const double *SKTV_RESTRICT covariance,
                           double *SKTV_RESTRICT g, double *SKTV_RESTRICT v)
{
    double total[SKTV_LANES] = {0.0};
    ptrdiff_t i, j, l;
    for (i = 0; i < p; i++) {
        const double *row = covariance + i * (i + 1) / 2 * SKTV_LANES;
        double sum[SKTV_LANES];
        for (l = 0; l < SKTV_LANES; l++)
            sum[l] = row[i * SKTV_LANES + l] * z[i];
        for (j = 0; j < i; j++)
            for (l = 0; l < SKTV_LANES; l++) {
                const double entry = row[j * SKTV_LANES + l];
                sum[l] += entry * z[j];
                g[j * SKTV_LANES + l] += entry * z[i];
            }
        for (l = 0; l < SKTV_LANES; l++)
            g[i * SKTV_LANES + l] = sum[l];
    }
    for (i = 0; i < p; i++)
        for (l = 0; l < SKTV_LANES; l++)
            total[l] += z[i] * g[i * SKTV_LANES + l];
    for (l = 0; l < SKTV_LANES; l++)
        v[l] = total[l] > 1e-300 ? total[l] : 1e-300;
}

/* The mode e of what is known of u = z' theta after the label,
       argmin (e - m)^2 / (2 v) + w (A(e) - y e),
   by Newton's steps from m. It lies between m and m + v w (y - A'(m)). Where a step
   leaves what is left of that interval, or is more than half of the one before, the
   interval is halved instead. On return h = w A''(e). */
static inline void sktv_mode(int poisson, double y, double w,
                             const double *SKTV_RESTRICT m,
                             const double *SKTV_RESTRICT v,
                             double *SKTV_RESTRICT e, double *SKTV_RESTRICT h)
{
    double low[SKTV_LANES], high[SKTV_LANES], size[SKTV_LANES];
    double curvature;
    int round;
    ptrdiff_t l;
    for (l = 0; l < SKTV_LANES; l++) {
        const double other =
            m[l] + v[l] * w * (y - sktv_mean(poisson, m[l], &curvature));
        low[l] = m[l] < other ? m[l] : other;
        high[l] = m[l] < other ? other : m[l];
        size[l] = 4.0 * (high[l] - low[l]);
        e[l] = m[l];
    }
    for (round = 0; round < SKTV_ROUNDS; round++) {
        double largest = 0.0;
        for (l = 0; l < SKTV_LANES; l++) {
            const double mean = sktv_mean(poisson, e[l], &curvature);
            const double slope = (e[l] - m[l]) + v[l] * w * (mean - y);
            const double step = slope / (1.0 + v[l] * w * curvature);
            const double next = e[l] - step;
            double rest, half;
            low[l] = slope > 0.0 ? low[l] : e[l];
            high[l] = slope > 0.0 ? e[l] : high[l];
            half = 0.5 * (low[l] + high[l]);
            rest = next >= low[l] && next <= high[l]
                && fabs(step) <= 0.5 * size[l] ? next : half;
            size[l] = fabs(rest - e[l]);
            e[l] = rest;
            rest = size[l] - 1e-9 * fabs(rest);
            largest = largest > rest ? largest : rest;
        }
        if (largest <= 1e-9)
            break;
    }
    for (l = 0; l < SKTV_LANES; l++) {
        sktv_mean(poisson, e[l], &curvature);
        h[l] = w * curvature;
    }
}

SKTV_LOOP void sktv_logistic_mode(double y, double w,
                                       const double *SKTV_RESTRICT m,
                                  const double *SKTV_RESTRICT v,
                                  double *SKTV_RESTRICT e, double *SKTV_RESTRICT h)
{
    sktv_mode(0, y, w, m, v, e, h);
}

SKTV_LOOP void sktv_poisson_mode(double y, double w,
                                     const double *SKTV_RESTRICT m,
                                 const double *SKTV_RESTRICT v,
                                 double *SKTV_RESTRICT e, double *SKTV_RESTRICT h)
{
    sktv_mode(1, y, w, m, v, e, h);
}

/* The label is learned, theta += g (e - u) / v of u = z' theta, and P -= g g' h / (1 + h v); then the
   coefficients walk, theta = K theta and P = K P K + Q, with diagonal K and Q: `keep`
   and `drift` are [2][lane], of the intercept and of the slopes, whose drift is
   multiplied by `ratio`.

   Rounding moves an entry of P by a few eps sqrt(P_ii P_jj) in a round, and all entries
   together by less than what is added to the diagonal. So P stays positive definite
   for ever; what is forgotten by it would be felt after 1e13 rows. */
SKTV_LOOP void sktv_condition(ptrdiff_t p, const double *SKTV_RESTRICT g,
                              const double *SKTV_RESTRICT u,
                              const double *SKTV_RESTRICT v,
                              const double *SKTV_RESTRICT e,
                              const double *SKTV_RESTRICT h,
                              const double *SKTV_RESTRICT ratio,
                              const double *SKTV_RESTRICT keep,
                              const double *SKTV_RESTRICT drift,
                              double *SKTV_RESTRICT theta,
                              double *SKTV_RESTRICT covariance)
{
    const double rounding = 1e-14 * (double)(p + 1);
    double gain[SKTV_LANES], shrink[SKTV_LANES];
    ptrdiff_t i, j, l;
    for (l = 0; l < SKTV_LANES; l++) {
        gain[l] = (e[l] - u[l]) / v[l];
        shrink[l] = h[l] > 0.0 ? 1.0 / (1.0 / h[l] + v[l]) : 0.0;
    }
    for (i = 0; i < p; i++) {
        double *row = covariance + i * (i + 1) / 2 * SKTV_LANES;
        const ptrdiff_t part = i ? SKTV_LANES : 0;
        double scaled[SKTV_LANES], kept[SKTV_LANES], added[SKTV_LANES];
        for (l = 0; l < SKTV_LANES; l++) {
            const double own = keep[part + l];
            added[l] = rounding * row[i * SKTV_LANES + l] + ratio[i] * drift[part + l];
            scaled[l] = shrink[l] * g[i * SKTV_LANES + l];
            kept[l] = own * keep[SKTV_LANES + l];
            theta[i * SKTV_LANES + l] =
                own * (theta[i * SKTV_LANES + l] + gain[l] * g[i * SKTV_LANES + l]);
            row[l] = own * keep[l] * (row[l] - scaled[l] * g[l]);
        }
        for (j = 1; j <= i; j++)
            for (l = 0; l < SKTV_LANES; l++)
                row[j * SKTV_LANES + l] =
                    kept[l] * (row[j * SKTV_LANES + l]
                               - scaled[l] * g[j * SKTV_LANES + l]);
        for (l = 0; l < SKTV_LANES; l++)
            row[i * SKTV_LANES + l] += added[l];
    }
}

/* What members predict: the mean of the label at u, drawn in to [low, high]. */
SKTV_LOOP void sktv_logistic_means(ptrdiff_t n, double low, double high,
                                   const double *SKTV_RESTRICT u,
                                   double *SKTV_RESTRICT near,
                                   double *SKTV_RESTRICT mean)
{
    ptrdiff_t j;
    for (j = 0; j < n; j++) {
        double unused;
        const double above = u[j] > low ? u[j] : low;
        near[j] = above < high ? above : high;
        mean[j] = sktv_mean(0, near[j], &unused);
    }
}

SKTV_LOOP void sktv_poisson_means(ptrdiff_t n, double low, double high,
                                  const double *SKTV_RESTRICT u,
                                  double *SKTV_RESTRICT near,
                                  double *SKTV_RESTRICT mean)
{
    ptrdiff_t j;
    for (j = 0; j < n; j++) {
        const double above = u[j] > low ? u[j] : low;
        near[j] = above < high ? above : high;
        mean[j] = sktv_exp_any(near[j]);
    }
}

/* factor = exp(-rate (loss - least)). */
SKTV_LOOP void sktv_factors(ptrdiff_t n, double rate, double least,
                            const double *SKTV_RESTRICT loss,
                            double *SKTV_RESTRICT factor)
{
    ptrdiff_t j;
    for (j = 0; j < n; j++)
        factor[j] = sktv_exp(-rate * (loss[j] - least));
}

#endif
