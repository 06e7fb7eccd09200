/* Exact one-dimensional weighted total-variation denoising by a taut string.

   minimise 1/2 sum_i w_i (y_i - u_i)^2 + alpha sum_i |u_{i+1} - u_i|,   w_i > 0.

   The sums of w u form the shortest string through a tube of half-width alpha
   around the sums of w y, tied to its middle at both ends. From the apex (the
   last touching point) the scan follows the steepest chord that ends on the lower
   wall and the flattest that ends on the upper wall. Where they cross, the string
   touches the wall of the chord that ends first: one piece of u is known, and
   that point is the next apex. A step has no branch that depends on the data
   but the crossing. The samples between the touching point and the crossing are
   visited again; where that costs more than a funnel would (both hulls kept from
   the apex on, each sample pushed and popped once), the funnel takes over, so the
   whole is O(n) for every input.

   Legend: lane 0 = lower wall, lane 1 = upper wall with its heights negated, so
   that one rule serves both. Heights are relative to the apex and to the slope
   `ref`. side = sign of the step of u at the apex: -1 lower wall, +1 upper wall,
   0 at the start. */

#ifndef SKTVDENOISE_SCAN_H
#define SKTVDENOISE_SCAN_H

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#if defined(_MSC_VER)
#define SCAN_INLINE static __forceinline
#define SCAN_APART static __declspec(noinline)
#elif defined(__GNUC__)
#define SCAN_INLINE static inline __attribute__((always_inline))
#define SCAN_APART static __attribute__((noinline))
#else
#define SCAN_INLINE static inline
#define SCAN_APART static
#endif

/* ---- a pair of doubles, one per lane ---- */

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
typedef __m128d duo;
SCAN_INLINE duo duo_of(double a, double b) { return _mm_set_pd(b, a); }
SCAN_INLINE duo duo_add(duo a, duo b) { return _mm_add_pd(a, b); }
SCAN_INLINE duo duo_sub(duo a, duo b) { return _mm_sub_pd(a, b); }
SCAN_INLINE duo duo_mul(duo a, duo b) { return _mm_mul_pd(a, b); }
SCAN_INLINE duo duo_div(duo a, duo b) { return _mm_div_pd(a, b); }
SCAN_INLINE duo duo_max(duo a, duo b) { return _mm_max_pd(a, b); }
SCAN_INLINE double duo_first(duo a) { return _mm_cvtsd_f64(a); }
SCAN_INLINE double duo_second(duo a) { return _mm_cvtsd_f64(_mm_unpackhi_pd(a, a)); }
SCAN_INLINE duo duo_ge(duo a, duo b) { return _mm_cmpge_pd(a, b); }
SCAN_INLINE duo duo_pick(duo mask, duo a, duo b)
{
    return _mm_or_pd(_mm_and_pd(mask, a), _mm_andnot_pd(mask, b));
}
#else
typedef struct { double a, b; } duo;
SCAN_INLINE duo duo_of(double a, double b) { duo r = {a, b}; return r; }
SCAN_INLINE duo duo_add(duo x, duo y) { return duo_of(x.a + y.a, x.b + y.b); }
SCAN_INLINE duo duo_sub(duo x, duo y) { return duo_of(x.a - y.a, x.b - y.b); }
SCAN_INLINE duo duo_mul(duo x, duo y) { return duo_of(x.a * y.a, x.b * y.b); }
SCAN_INLINE duo duo_div(duo x, duo y) { return duo_of(x.a / y.a, x.b / y.b); }
SCAN_INLINE duo duo_max(duo x, duo y)
{
    return duo_of(x.a > y.a ? x.a : y.a, x.b > y.b ? x.b : y.b);
}
SCAN_INLINE double duo_first(duo x) { return x.a; }
SCAN_INLINE double duo_second(duo x) { return x.b; }
SCAN_INLINE duo duo_ge(duo x, duo y) { return duo_of(x.a >= y.a, x.b >= y.b); }
SCAN_INLINE duo duo_pick(duo mask, duo x, duo y)
{
    return duo_of(mask.a != 0 ? x.a : y.a, mask.b != 0 ? x.b : y.b);
}
#endif

/* ---- the string ---- */

typedef struct {
    const double *y, *w;        /* w is NULL for unit weights */
    double *u;                  /* must not overlap y or w */
    ptrdiff_t n, p, last;       /* first unknown sample; start of the last piece */
    ptrdiff_t pieces, visits;
    double alpha, ref;          /* ref: last value written, y[0] before the first */
    int side;
} taut;

/* Heights of the walls of a tube point, less its middle, seen from the apex. */
SCAN_INLINE duo taut_walls(const taut *t)
{
    if (t->side == 0)
        return duo_of(t->alpha, t->alpha);
    return t->side < 0 ? duo_of(0, 2 * t->alpha) : duo_of(2 * t->alpha, 0);
}

/* The same at the last point, where both walls meet in the middle. */
SCAN_INLINE duo taut_close(const taut *t)
{
    if (t->side == 0)
        return duo_of(0, 0);
    return t->side < 0 ? duo_of(-t->alpha, t->alpha) : duo_of(t->alpha, -t->alpha);
}

typedef struct { double s, k; ptrdiff_t end; } segment;   /* rise s over weight k */

/* The samples [first, end] as one segment, heights relative to the slope `ref`. The
   rare uses are kept out of the loops. */
SCAN_APART segment segment_of(const double *y, const double *w, ptrdiff_t first,
                              ptrdiff_t end, double ref)
{
    segment all = {0, 0, end};
    for (; first <= end; first++) {
        all.k += w ? w[first] : 1.0;
        all.s += (y[first] - ref) * (w ? w[first] : 1.0);
    }
    return all;
}

/* Whether the pieces that meet at p are one. u and y step in the direction of `side`
   there. Where u does not, rounding has split a piece or moved its end past samples
   of negligible weight; where y does not, it has if the step is tiny. */
SCAN_INLINE int taut_tied(const taut *t, double value)
{
    const double before = t->y[t->p - 1], after = t->y[t->p];
    const double step = t->side * (value - t->ref);
    return !(step > 0)
           || (t->side * (after - before) <= 0
               && step <= 1e-12 * (fabs(value) + fabs(before) + fabs(after)));
}

/* Write the piece [p, end]; tied pieces get the value of the heavier. */
SCAN_INLINE void taut_emit(taut *t, ptrdiff_t end, double value, int side)
{
    const ptrdiff_t p = t->p;
    double *u = t->u;
    ptrdiff_t i;
    if (p > 0 && taut_tied(t, value)) {
        if (segment_of(t->y, t->w, t->last, p - 1, 0).k
            < segment_of(t->y, t->w, p, end, 0).k) {
            for (i = t->last; i < p; i++)
                u[i] = value;
        } else {
            value = t->ref;
        }
    } else {
        t->last = p;
    }
    if (end < p + 16 && p + 16 <= t->n) {
        for (i = p; i < p + 16; i++)    /* later pieces overwrite the surplus */
            u[i] = value;
    } else {
        for (i = p; i <= end; i++)
            u[i] = value;
    }
    t->p = end + 1;
    t->ref = value;
    t->side = side;
    t->pieces++;
}

/* Pieces of one sample whose neighbours lie on both sides of it, the next by more than
   2 alpha: the chords cross at the next sample, and u is y. */
SCAN_INLINE void taut_follow(taut *t, const int weighted)
{
    const double *y = t->y;
    const double alpha = t->alpha, side = t->side;
    const ptrdiff_t n = t->n;
    ptrdiff_t p = t->p;
    for (; p < n - 1; p++) {
        const double rise = side * (y[p + 1] - y[p]);
        if (!((weighted ? rise * t->w[p + 1] : rise) > 2 * alpha))
            break;
        if (p == t->p && taut_tied(t, y[p]))
            return;
        t->u[p] = y[p];
    }
    if (p > t->p) {
        t->visits += p - t->p;
        t->pieces += p - t->p;
        t->p = p;
        t->last = p - 1;
        t->ref = y[p - 1];
    }
}

/* ---- scan ---- */

/* Sums and weight since the apex; slope and length (samples) of the two chords. */
typedef struct { duo sum, k, samples, slope, length; } chords;

/* One more sample. The only chain of dependent operations through `slope` is a
   maximum; the division is off that chain. Ties keep the longer chord. Returns
   whether the chords cross. */
SCAN_INLINE int chords_step(chords *c, double d, double w, duo wall, const int weighted)
{
    duo slope, steeper;
    if (weighted) {
        d *= w;
        c->k = duo_add(c->k, duo_of(w, w));
    }
    c->sum = duo_add(c->sum, duo_of(d, -d));
    c->samples = duo_add(c->samples, duo_of(1, 1));
    slope = duo_div(duo_sub(c->sum, wall), weighted ? c->k : c->samples);
    steeper = duo_ge(slope, c->slope);
    c->slope = duo_max(slope, c->slope);
    c->length = duo_pick(steeper, c->samples, c->length);
    return duo_first(c->slope) > -duo_second(c->slope);
}

/* Pass a stride of samples that change neither chord: none is above the line through
   the apex and the chord's end, by more than rounding. Without a division and a branch
   a sample costs a third of a step. Returns 0, and does nothing, if one may be. */
enum { SCAN_STRIDE = 16 };

SCAN_INLINE int chords_pass(chords *c, const double *y, const double *w, double ref,
                            duo wall, const int weighted)
{
    duo sum = c->sum, k = weighted ? c->k : c->samples;
    duo line = duo_add(wall, duo_mul(c->slope, k));
    duo most = duo_of(-HUGE_VAL, -HUGE_VAL);
    double margin;
    int i;
    for (i = 0; i < SCAN_STRIDE; i++) {
        const double d = weighted ? (y[i] - ref) * w[i] : y[i] - ref;
        sum = duo_add(sum, duo_of(d, -d));
        if (weighted) {
            k = duo_add(k, duo_of(w[i], w[i]));
            line = duo_add(line, duo_mul(c->slope, duo_of(w[i], w[i])));
        } else {
            line = duo_add(line, c->slope);
        }
        most = duo_max(duo_sub(sum, line), most);
    }
    margin = 1e-13 * (fabs(duo_first(sum)) + duo_first(wall) + duo_second(wall));
    if (!(duo_first(most) < -margin) || !(duo_second(most) < -margin))
        return 0;
    c->sum = sum;
    c->k = k;
    c->samples = duo_add(c->samples, duo_of(SCAN_STRIDE, SCAN_STRIDE));
    return 1;
}

/* Scan from the apex until u is complete (returns 1), or until the samples visited
   again, and five for every piece (about the cost of a mispredicted crossing),
   exceed 4 per sample written and an allowance (returns 0). The first pieces say
   little about those to come and get the larger allowance. */
SCAN_INLINE int taut_scan(taut *t, const int weighted)
{
    const double *y = t->y, *w = t->w;
    const ptrdiff_t n = t->n, start = t->p;
    ptrdiff_t spent = 0;
    while (taut_follow(t, weighted), t->p < n) {
        const ptrdiff_t p = t->p;
        const double ref = t->ref;
        const duo wall = taut_walls(t), zero = duo_of(0, 0);
        chords c = {zero, zero, zero, duo_of(-HUGE_VAL, -HUGE_VAL), zero};
        ptrdiff_t i = p, low, upp, steps = 2 * SCAN_STRIDE;
        int crossed = 0;
        while (i < n - 1 && !crossed) {
            const ptrdiff_t stop = n - 1 - i < steps ? n - 1 : i + steps;
            for (; i < stop && !crossed; i++)
                crossed = chords_step(&c, y[i] - ref, weighted ? w[i] : 1, wall,
                                      weighted);
            steps = steps < 256 ? 2 * steps : steps;
            while (!crossed && n - 1 - i >= SCAN_STRIDE
                   && chords_pass(&c, y + i, weighted ? w + i : NULL, ref, wall,
                                  weighted)) {
                i += SCAN_STRIDE;
                steps = SCAN_STRIDE;
            }
        }
        if (!crossed) {
            const duo close = taut_close(t);
            crossed = chords_step(&c, y[i] - ref, weighted ? w[i] : 1, close, weighted);
            i++;
        }
        t->visits += i - p;
        low = p - 1 + (ptrdiff_t)duo_first(c.length);
        upp = p - 1 + (ptrdiff_t)duo_second(c.length);
        if (!crossed) {
            taut_emit(t, n - 1, ref + duo_first(c.slope), 0);
            return 1;
        }
        if (low < upp)
            taut_emit(t, low, ref + duo_first(c.slope), -1);
        else
            taut_emit(t, upp, ref - duo_second(c.slope), 1);
        spent += i - t->p + 5;
        if (spent > 4 * (t->p - start) + t->n / (t->pieces < 16 ? 4 : 64) + 64)
            return 0;
    }
    return 1;
}

/* ---- funnel ---- */

/* The hull of one wall from the apex to the present sample: slopes fall. All
   segments but the last are in [head, tail). */
typedef struct { segment *base, *head, *tail, last; } hull;

SCAN_INLINE void hull_push(hull *h, double s, double k, ptrdiff_t end)
{
    while (h->last.s * k <= s * h->last.k) {    /* the new segment is steeper */
        s += h->last.s;
        k += h->last.k;
        if (h->head == h->tail) {
            h->last.s = s, h->last.k = k, h->last.end = end;
            return;
        }
        h->last = *--h->tail;
    }
    *h->tail++ = h->last;
    h->last.s = s, h->last.k = k, h->last.end = end;
}

/* Drop the first segment; keep the rest near `base`, each moved once per pop. */
SCAN_INLINE void hull_pop(hull *h)
{
    const ptrdiff_t room = ++h->head - h->base, size = h->tail - h->head;
    if (room > 512 && room > size) {
        memcpy(h->base, h->head, (size_t)size * sizeof(segment));
        h->head = h->base;
        h->tail = h->base + size;
    }
}

/* Mean of y over [p, end], moved by alpha times the steps of u at its two ends. */
SCAN_INLINE double taut_value(const taut *t, ptrdiff_t end, int side, const int weighted)
{
    const double ref = t->y[t->p];
    double sum = t->alpha * (side - t->side), k = weighted ? t->w[t->p] : 1.0;
    ptrdiff_t i;
    for (i = t->p + 1; i <= end; i++) {
        const double w = weighted ? t->w[i] : 1.0;
        sum += (t->y[i] - ref) * w;
        k += w;
    }
    return ref + sum / k;
}

/* Where the one segment of `across` is steeper than the other hull allows, the
   string touches that hull: write its first pieces. Heights are seen from the apex,
   so `across` moves with it, by a difference; where little of its weight remains it
   is summed anew. Each time the weight of what lies ahead has fallen by 10^4, so a
   sample is summed but a few times. */
SCAN_INLINE void taut_touch(taut *t, hull *touched, hull *across, int side, double ref,
                            const int weighted)
{
    if (across->head != across->tail)
        return;
    while (touched->head != touched->tail
           && touched->head->s * across->last.k > -(across->last.s * touched->head->k)) {
        const segment first = *touched->head;
        taut_emit(t, first.end, taut_value(t, first.end, side, weighted), side);
        across->last.s += first.s;
        across->last.k -= first.k;
        if (weighted && across->last.k < 1e-4 * first.k) {
            across->last = segment_of(t->y, t->w, t->p, across->last.end, ref);
            across->last.s = side * across->last.s
                             - (across->last.end < t->n - 1 ? 2 : 1) * t->alpha;
        }
        hull_pop(touched);
    }
}

/* Follow both hulls from the apex until u is complete, or until `quota` samples were
   read and the look-ahead is below a quarter of what was written. `store` has room for
   2 (n - p) segments. */
SCAN_INLINE void taut_funnel(taut *t, segment *store, ptrdiff_t quota, const int weighted)
{
    const double *y = t->y, *w = t->w, ref = t->ref;
    const ptrdiff_t n = t->n, start = t->p;
    const double k0 = weighted ? w[start] : 1.0, d0 = (y[start] - ref) * k0;
    segment *half = store + (n - start);
    hull low = {store, store, store, {d0 - duo_first(taut_walls(t)), k0, start}};
    hull upp = {half, half, half, {-d0 - duo_second(taut_walls(t)), k0, start}};
    ptrdiff_t i;
    for (i = start + 1; i < n; i++) {
        const double k = weighted ? w[i] : 1.0, d = (y[i] - ref) * k;
        const double close = i < n - 1 ? 0 : t->alpha;
        hull_push(&low, d + close, k, i);
        hull_push(&upp, -d + close, k, i);
        taut_touch(t, &low, &upp, -1, ref, weighted);
        taut_touch(t, &upp, &low, 1, ref, weighted);
        if (i - start >= quota && 4 * (i - t->p) < t->p - start && i < n - 1)
            break;
    }
    t->visits += i - start;
    if (i == n)
        taut_emit(t, n - 1, taut_value(t, n - 1, 0, weighted), 0);
}

/* ---- the two together ---- */

/* Each loop is compiled apart, once for unit weights and once for any, on a copy of
   the string that nothing else can point to: its variables stay in registers. */
SCAN_APART int scan_unit(taut *t)
{
    taut own = *t;
    const int done = taut_scan(&own, 0);
    *t = own;
    return done;
}

SCAN_APART int scan_weighted(taut *t)
{
    taut own = *t;
    const int done = taut_scan(&own, 1);
    *t = own;
    return done;
}

SCAN_APART void funnel_unit(taut *t, segment *store, ptrdiff_t quota)
{
    taut own = *t;
    taut_funnel(&own, store, quota, 0);
    *t = own;
}

SCAN_APART void funnel_weighted(taut *t, segment *store, ptrdiff_t quota)
{
    taut own = *t;
    taut_funnel(&own, store, quota, 1);
    *t = own;
}

/* Write the solution to u. Returns 0, or -1 if memory ran out. `visits` receives
   the number of samples read, at most a fixed multiple of n. */
static int taut_solve(const double *y, const double *w, ptrdiff_t n, double alpha,
                      double *u, ptrdiff_t *visits)
{
    taut t = {y, w, u, n, 0, 0, 0, 0, alpha, y[0], 0};
    segment *store = NULL;
    ptrdiff_t quota = n / 8;
    while (!(w ? scan_weighted(&t) : scan_unit(&t))) {
        if (store == NULL)
            store = (segment *)malloc(2 * (size_t)(n - t.p) * sizeof(segment));
        if (store == NULL)
            return -1;
        if (w)
            funnel_weighted(&t, store, quota);
        else
            funnel_unit(&t, store, quota);
        quota *= 2;
    }
    free(store);
    *visits = t.visits;
    return 0;
}

#endif
