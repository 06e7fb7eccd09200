/* Loops over experts with coefficients, eight of them side by side: entry i of expert
   l is a[i * SKTV_LANES + l]. All see the same row x, so that every operation is one of
   whole lanes, and what an expert computes does not depend on its neighbours.

   The inverse P of a matrix lambda I + sum f f' is kept as U D U', U upper triangular
   with ones on its diagonal, D diagonal (Bierman 1977). D stays positive and no
   differences of sums are formed, which is why no digits are lost over a million rows.
   Column j of U is its entries (i, j), i < j, from place j (j - 1) / 2 on. */
#ifndef SKTVDENOISE_LINEAR_H
#define SKTVDENOISE_LINEAR_H

#include <math.h>
#include "_exp.h"

#define SKTV_LANES 8
#define SKTV_EACH(l) for (l = 0; l < SKTV_LANES; l++)

/* exp(z) is taken to be no larger than at this z, so that squares are numbers. */
#define SKTV_LARGEST_LOG_RATE 100.0

/* sum += a x: n rows of lanes. Two partial sums stay in registers. */
static inline void sktv_lin_sum(ptrdiff_t n, const double *a, const double *x,
                                double *sum)
{
    double even[SKTV_LANES], odd[SKTV_LANES];
    ptrdiff_t i, l;
    SKTV_EACH(l) {
        even[l] = sum[l];
        odd[l] = 0.0;
    }
    for (i = 0; i + 2 <= n; i += 2, a += 2 * SKTV_LANES)
        SKTV_EACH(l) {
            even[l] += a[l] * x[i];
            odd[l] += a[SKTV_LANES + l] * x[i + 1];
        }
    if (i < n)
        SKTV_EACH(l) even[l] += a[l] * x[i];
    SKTV_EACH(l) sum[l] = even[l] + odd[l];
}

/* z = x' theta. */
SKTV_LOOP void sktv_lin_dot(ptrdiff_t p, const double *SKTV_RESTRICT x,
                            const double *SKTV_RESTRICT theta,
                            double *SKTV_RESTRICT z)
{
    double sum[SKTV_LANES] = {0.0};
    ptrdiff_t l;
    sktv_lin_sum(p, theta, x, sum);
    SKTV_EACH(l) z[l] = sum[l];
}

/* f = U'x and leverage = x'P x = f'D f. */
SKTV_LOOP void sktv_lin_factor(ptrdiff_t p, const double *SKTV_RESTRICT x,
                               const double *SKTV_RESTRICT d,
                               const double *SKTV_RESTRICT u,
                               double *SKTV_RESTRICT f,
                               double *SKTV_RESTRICT leverage)
{
    double total[SKTV_LANES] = {0.0};
    ptrdiff_t j, l;
    for (j = 0; j < p; j++) {
        double sum[SKTV_LANES];
        SKTV_EACH(l) sum[l] = x[j];
        sktv_lin_sum(j, u, x, sum);
        u += j * SKTV_LANES;
        SKTV_EACH(l) {
            f[j * SKTV_LANES + l] = sum[l];
            total[l] += sum[l] * d[j * SKTV_LANES + l] * sum[l];
        }
    }
    SKTV_EACH(l) leverage[l] = total[l];
}

/* mean_i += sum over lanes of share theta_i. */
SKTV_LOOP void sktv_lin_mix(ptrdiff_t p, const double *SKTV_RESTRICT share,
                            const double *SKTV_RESTRICT theta,
                            double *SKTV_RESTRICT mean)
{
    ptrdiff_t i, l;
    for (i = 0; i < p; i++) {
        double t[SKTV_LANES];
        SKTV_EACH(l) t[l] = share[l] * theta[i * SKTV_LANES + l];
        mean[i] += ((t[0] + t[4]) + (t[1] + t[5])) + ((t[2] + t[6]) + (t[3] + t[7]));
    }
}

/* The inverse of P becomes P^-1 + g^2 x x' / noise, f = U'x as above, and
   gain = P g x / (noise + g^2 x'P x), P that before. */
SKTV_LOOP void sktv_lin_update(ptrdiff_t p, double noise,
                               const double *SKTV_RESTRICT g,
                               const double *SKTV_RESTRICT f,
                               double *SKTV_RESTRICT d,
                               double *SKTV_RESTRICT u,
                               double *SKTV_RESTRICT gain)
{
    double inverse[SKTV_LANES], alpha[SKTV_LANES];
    ptrdiff_t i, j, l;
    SKTV_EACH(l) {
        alpha[l] = noise;
        inverse[l] = 1.0 / noise;
    }
    for (j = 0; j < p; j++) {
        double v[SKTV_LANES], factor[SKTV_LANES];
        SKTV_EACH(l) {
            const double h = g[l] * f[j * SKTV_LANES + l];
            const double before = alpha[l];
            v[l] = d[j * SKTV_LANES + l] * h;
            factor[l] = -h * inverse[l];
            alpha[l] += v[l] * h;
            inverse[l] = 1.0 / alpha[l];
            d[j * SKTV_LANES + l] *= before * inverse[l];
            gain[j * SKTV_LANES + l] = v[l];
        }
        for (i = 0; i < j; i++, u += SKTV_LANES)
            SKTV_EACH(l) {
                const double old = u[l];
                u[l] = old + gain[i * SKTV_LANES + l] * factor[l];
                gain[i * SKTV_LANES + l] += old * v[l];
            }
    }
    for (j = 0; j < p; j++)
        SKTV_EACH(l) gain[j * SKTV_LANES + l] *= inverse[l];
}

/* theta += direction * step. */
SKTV_LOOP void sktv_lin_step(ptrdiff_t p, const double *SKTV_RESTRICT direction,
                             const double *SKTV_RESTRICT step,
                             double *SKTV_RESTRICT theta)
{
    ptrdiff_t i, l;
    for (i = 0; i < p; i++)
        SKTV_EACH(l)
            theta[i * SKTV_LANES + l] += direction[i * SKTV_LANES + l] * step[l];
}

/* theta += x * step, then drawn in to [-box, box]. */
SKTV_LOOP void sktv_lin_descend(ptrdiff_t p, double box, const double *SKTV_RESTRICT x,
                                const double *SKTV_RESTRICT step,
                                double *SKTV_RESTRICT theta)
{
    ptrdiff_t i, l;
    for (i = 0; i < p; i++)
        SKTV_EACH(l) {
            const double t = theta[i * SKTV_LANES + l] + x[i] * step[l];
            const double low = t > -box ? t : -box;
            theta[i * SKTV_LANES + l] = low < box ? low : box;
        }
}

/* Largest |theta| of each expert. */
SKTV_LOOP void sktv_lin_extent(ptrdiff_t p, const double *SKTV_RESTRICT theta,
                               double *SKTV_RESTRICT extent)
{
    double most[SKTV_LANES] = {0.0};
    ptrdiff_t i, l;
    for (i = 0; i < p; i++)
        SKTV_EACH(l) {
            const double size = fabs(theta[i * SKTV_LANES + l]);
            most[l] = size > most[l] ? size : most[l];
        }
    SKTV_EACH(l) extent[l] = most[l];
}

/* Charge losses to log weights, at most 1e300 each. */
SKTV_LOOP void sktv_lin_charge(double rate, const double *SKTV_RESTRICT loss,
                               double *SKTV_RESTRICT log_weight,
                               double *SKTV_RESTRICT weight)
{
    ptrdiff_t l;
    SKTV_EACH(l) {
        const double charge = rate * loss[l];
        const double lw = log_weight[l] - (charge < 1e300 ? charge : 1e300);
        log_weight[l] = lw;
        weight[l] = sktv_exp(lw);
    }
}

/* value = (y - z)^2, slope = 2 (z - y). */
static inline void sktv_lin_squared(double y, const double *z, double *value,
                                    double *slope)
{
    ptrdiff_t l;
    SKTV_EACH(l) {
        const double error = z[l] - y;
        value[l] = error * error;
        slope[l] = 2.0 * error;
    }
}

/* value = exp(z) - y z + y ln y - y, slope = exp(z) - y. */
SKTV_LOOP void sktv_lin_poisson(double y, const double *SKTV_RESTRICT z,
                                double *SKTV_RESTRICT value,
                                double *SKTV_RESTRICT slope)
{
    const double least = y > 0.0 ? y * log(y) - y : 0.0;
    ptrdiff_t l;
    SKTV_EACH(l) {
        const double most = SKTV_LARGEST_LOG_RATE;
        const double mean = sktv_exp(z[l] < most ? z[l] : most);
        value[l] = (mean - y * z[l]) + least;
        slope[l] = mean - y;
    }
}

/* value = ln(1 + exp(z)) - y z, slope = 1 / (1 + exp(-z)) - y. */
static inline void sktv_lin_logistic(double y, const double *z, double *value,
                                     double *slope)
{
    ptrdiff_t l;
    SKTV_EACH(l) {
        const double e = exp(-fabs(z[l]));
        const double up = z[l] > 0.0 ? 1.0 : e;
        value[l] = log1p(e) + (z[l] > 0.0 ? (1.0 - y) * z[l] : -y * z[l]);
        slope[l] = up / (1.0 + e) - y;
    }
}

#endif
