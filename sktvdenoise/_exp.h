/* The inner loops over experts, in straight-line C that compilers vectorise.

   No branch, no call and no reduction in the loops marked "vectorised"; the
   sums are kept in four partial sums, so that their order is fixed and the
   results do not depend on how a stream is cut into batches. */
#ifndef SKTVDENOISE_EXP_H
#define SKTVDENOISE_EXP_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(_MSC_VER)
#define SKTV_RESTRICT __restrict
#else
#define SKTV_RESTRICT restrict
#endif

/* Loops that gain from wider registers are compiled for them, too, where the loader
   can choose. The arithmetic is the same (no fused multiply-add), so are the results. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && \
    (!defined(__clang__) || __clang_major__ >= 14)
#define SKTV_LOOP \
    __attribute__((unused, target_clones("avx2", "default"))) static
#else
#define SKTV_LOOP static inline
#endif

/* Below this argument exp is returned as 0: of a total of 1e-100 or more, exp(-600)
   is no part. Products with labels stay clear of subnormal numbers, which are slow. */
#define SKTV_EXP_MIN -600.0

/* exp(x) for x <= 700, relative error below 3e-16; 0 below SKTV_EXP_MIN.
   x = k ln 2 + r with |r| <= ln(2)/2, and exp(r) is its Taylor polynomial of
   degree 13, whose remainder is below 1e-17. Adding 1.5 * 2^52 rounds to the
   nearest integer and leaves k in the low bits of the sum. */
static inline double sktv_exp(double x)
{
    const double magic = 6755399441055744.0;
    const double t = x > SKTV_EXP_MIN ? x : SKTV_EXP_MIN;
    const double shifted = t * 1.4426950408889634 + magic;
    const double k = shifted - magic;
    const double r = (t - k * 6.93147180369123816490e-01)
                     - k * 1.90821492927058770002e-10;
    double p = 1.6059043836821613e-10;
    int64_t bits;
    double scale;
    p = p * r + 2.0876756987868099e-09;
    p = p * r + 2.5052108385441720e-08;
    p = p * r + 2.7557319223985893e-07;
    p = p * r + 2.7557319223985888e-06;
    p = p * r + 2.4801587301587302e-05;
    p = p * r + 1.9841269841269841e-04;
    p = p * r + 1.3888888888888889e-03;
    p = p * r + 8.3333333333333332e-03;
    p = p * r + 4.1666666666666664e-02;
    p = p * r + 1.6666666666666666e-01;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (int64_t)(((uint64_t)bits << 52) + 0x3ff0000000000000u);
    memcpy(&scale, &bits, sizeof scale);
    return x > SKTV_EXP_MIN ? p * scale : 0.0;
}

/* One round of every expert, vectorised: charge the loss of its prediction
   (its mean), rate * sample_weight * (error / unit)^2, to its log weight, then
   learn the label. A single charge is at most 1e300, so that log weights stay
   finite. */
SKTV_LOOP void sktv_round(ptrdiff_t n, double y, double sample_weight,
                              double rate, double inverse_unit,
                              double *SKTV_RESTRICT mean,
                              double *SKTV_RESTRICT mass,
                              double *SKTV_RESTRICT log_weight,
                              double *SKTV_RESTRICT weight)
{
    const double charge = rate * sample_weight;
    ptrdiff_t j;
    for (j = 0; j < n; j++) {
        const double error = y - mean[j];
        const double in_units = error * inverse_unit;
        const double loss = charge * (in_units * in_units);
        const double lw = log_weight[j] - (loss < 1e300 ? loss : 1e300);
        const double total = mass[j] + sample_weight;
        log_weight[j] = lw;
        weight[j] = sktv_exp(lw);
        mass[j] = total;
        mean[j] += sample_weight / total * error;
    }
}

/* weight = exp(log_weight), vectorised. */
SKTV_LOOP void sktv_weights(ptrdiff_t n,
                                const double *SKTV_RESTRICT log_weight,
                                double *SKTV_RESTRICT weight)
{
    ptrdiff_t j;
    for (j = 0; j < n; j++)
        weight[j] = sktv_exp(log_weight[j]);
}

/* *total = sum of a, *dot = sum of a * b. */
static inline void sktv_sums(ptrdiff_t n, const double *a, const double *b,
                             double *total, double *dot)
{
    double s[4] = {0.0, 0.0, 0.0, 0.0}, d[4] = {0.0, 0.0, 0.0, 0.0};
    ptrdiff_t j, i;
    for (j = 0; j + 4 <= n; j += 4)
        for (i = 0; i < 4; i++) {
            s[i] += a[j + i];
            d[i] += a[j + i] * b[j + i];
        }
    for (i = 0; j < n; j++, i++) {
        s[i] += a[j];
        d[i] += a[j] * b[j];
    }
    *total = (s[0] + s[1]) + (s[2] + s[3]);
    *dot = (d[0] + d[1]) + (d[2] + d[3]);
}

/* sum of a * exp(-(z - b / unit)^2 / 2). */
SKTV_LOOP double sktv_mix(ptrdiff_t n, const double *SKTV_RESTRICT a,
                              const double *SKTV_RESTRICT b,
                              double inverse_unit, double z)
{
    double s[4] = {0.0, 0.0, 0.0, 0.0};
    ptrdiff_t j, i;
    for (j = 0; j + 4 <= n; j += 4)
        for (i = 0; i < 4; i++) {
            const double error = z - b[j + i] * inverse_unit;
            s[i] += a[j + i] * sktv_exp(-0.5 * (error * error));
        }
    for (i = 0; j < n; j++, i++) {
        const double error = z - b[j] * inverse_unit;
        s[i] += a[j] * sktv_exp(-0.5 * (error * error));
    }
    return (s[0] + s[1]) + (s[2] + s[3]);
}

/* variance moves towards `square` by the part `gain`. Squares above nine variances
   count as nine, or four times as many for each surprise among the labels just
   before: a single outlier counts for little, a change of scale for all. */
static inline void sktv_winsorised(double square, double gain, double *variance,
                                   long long *n_surprises)
{
    double cap;
    if (*variance == 0.0) {
        *variance = square;
        return;
    }
    cap = 9.0 * *variance;
    if (*n_surprises)
        cap = ldexp(cap, 2 * (int)*n_surprises);
    *variance += gain * ((square < cap ? square : cap) - *variance);
    if (square > cap)
        *n_surprises += *n_surprises < 40;
    else if (*n_surprises > 0)
        *n_surprises -= 1;
}

#endif
