# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""The pool behind the default rate: members, their aggregation, and the guard.

One round: the guard's account; labels that are far off held back; trackers (fixed
share over the members) and top (ML-Poly over members and trackers) learn from the
errors; the variance of the noise; the members learn and predict; the output. Nothing
is allocated, and a round costs the same in all streams of all lengths.
"""
from libc.math cimport exp, fabs, frexp, ldexp, sqrt
from libc.string cimport memset

from sktvdenoise._members cimport (
    CAPACITY, MAX_FEATURES, Mixture, Past, Profile, Ridge, ewma_learn, find_period,
    gain_of, holt_learn, lagged, mixture_learn, mixture_start, past_learn,
    profile_learn, ridge_learn, ridge_predict, sktv_sums,
)
from sktvdenoise._online cimport Spread, Stream, account, struct_of
from sktvdenoise._online cimport learn as flh_learn

import numpy as np

cdef extern from "_pool.h" nogil:
    void sktv_student(Py_ssize_t n, double y, double c, const double* p,
                      double* factor)
    void sktv_share(Py_ssize_t n, double share, const double* factor,
                    double* weight)
    void sktv_ml_poly(Py_ssize_t n, double x, double slope, double step,
                      double least, double most, double curvature, double free,
                      const double* p, double* regret, double* variance)
    void sktv_winsorised(double square, double gain, double* variance,
                         long long* n_surprises)

# Names of fields with eight bytes, as in the structs of the .pxd.
_INTEGERS = ("row", "round", "age", "n_held", "side", "n_surprises", "tripped")
_NUMBERS = (
    "unit", "n_far", "mean_weight", "mass", "mean", "last", "low", "high", "near_low", "near_high",
    "variance", "output", "forecast", "largest", "excess", "bound", "weight_bound",
)
POOL_DTYPE = np.dtype([(name, "i8") for name in _INTEGERS]
                      + [(name, "f8") for name in _NUMBERS])
ROW_DTYPE = np.dtype([(name, "i8") for name in ("kind", "first", "n_members", "offset")]
                     + [("prior", "f8"), ("a", "f8", 3)])
MIXTURE_DTYPE = np.dtype(
    [("n", "f8")]
    + [(name, "f8", CAPACITY) for name in ("birth", "m", "b", "v", "cov", "u")]
    + [("w", "f8", (3, CAPACITY))])
TOP_DTYPE = np.dtype(
    [(name, "f8", MAX_MEMBERS) for name in ("prediction", "regret", "variance", "share")]
    + [("weight", "f8", (N_TRACKERS, MAX_MEMBERS))])

cdef double[N_TRACKERS] SHARES = [1e-4, 1e-3, 1e-2, 1e-1]
cdef enum:
    N_STEADY = 2                 # trackers of the smallest shares
cdef double MARGIN = 0.25        # of the range, beyond which nothing is predicted
cdef double FAR = 20.0           # ranges beyond the range: held back once,
cdef double VERY_FAR = 500.0     # three times
cdef double FADING = 1.0 - 1.0 / 64.0
cdef double SMALLEST = 1e-100    # standard deviation
cdef double LARGEST = 1e60       # label in units of a stream

cdef inline double clip(double x, double low, double high) noexcept nogil:
    return min(max(x, low), high)


cdef inline double rounding(const Pool* s) noexcept nogil:
    """What is left of a difference of predictions where all labels are equal."""
    return 1e-13 * max(fabs(s.low), fabs(s.high))


cdef inline double noise_variance(const Pool* s) noexcept nogil:
    """The variance of the noise, positive, and above that of rounding."""
    cdef double width = s.near_high - s.near_low
    cdef double least = max(rounding(s), SMALLEST)
    return max(max(s.variance, 1e-10 * width * width), least * least)


cdef inline double within_reach(const Pool* s, double x) noexcept nogil:
    """x drawn in to what may be predicted."""
    cdef double margin = MARGIN * (s.high - s.low)
    return clip(x, s.low - margin, s.high + margin)


cdef inline bint is_mixture(long long kind) noexcept nogil:
    return MEANS <= kind <= ROBUST_TRENDS


cdef inline Past* past_of(double* memory) noexcept nogil:
    return <Past*>(memory + sizeof(Top) // sizeof(double))


cdef void features(Ridge* r, const Row* row, const Pool* s, const Past* past,
                   const Profile* profile) noexcept nogil:
    """The regression behind the next prediction."""
    cdef Py_ssize_t d = <Py_ssize_t>row.a[0]
    cdef Py_ssize_t k, p
    cdef double before = lagged(past, 1, s.last)
    if row.kind == REVERSION:
        r.n_features = 3
        r.base = s.last
        r.x[0] = s.mean - s.last
        r.x[1] = s.last - before
        r.x[2] = sqrt(noise_variance(s))
    elif row.kind == LAGS:
        r.n_features = d
        r.base = s.mean
        for k in range(d):
            r.x[k] = lagged(past, k, s.mean) - s.mean
    elif row.kind == DIFFERENCES:
        r.n_features = d + 1
        r.base = s.last
        for k in range(d):
            if k + 1 < past.n:
                r.x[k] = lagged(past, k, 0.0) - lagged(past, k + 1, 0.0)
            else:
                r.x[k] = 0.0
        r.x[d] = s.mean - s.last
    else:
        # One period ago the next label, the last, and the one before are at lags
        # p - 1, p and p + 1.
        p = <Py_ssize_t>past.period
        r.n_features = 5
        r.base = s.last
        memset(r.x, 0, 5 * sizeof(double))
        if p > 0:
            r.x[0] = lagged(past, p - 1, s.mean) - lagged(past, p, s.mean)
            r.x[1] = (profile.deviation[(s.round + 1) % p]
                      - profile.deviation[s.round % p])
            r.x[2] = profile.level + profile.deviation[s.round % p] - s.last
            r.x[3] = lagged(past, p - 1, s.mean) - s.last
            r.x[4] = (s.last - before - lagged(past, p, s.mean)
                      + lagged(past, p + 1, s.mean))


cdef void restart(Pool* s, double* memory, const Row* rows, Py_ssize_t n_rows,
                  Py_ssize_t n_members, double y, double w) noexcept nogil:
    """All members know y, and nothing else. The noise and the range are kept."""
    cdef Top* top = <Top*>memory
    cdef Past* past = past_of(memory)
    cdef Py_ssize_t i, j, k, size
    cdef double total = 0.0
    cdef const Row* row
    s.age = 1
    s.mass = w
    s.mean = s.last = s.output = y
    s.side = 0
    s.largest = 0.0
    memset(top, 0, sizeof(Top))
    memset(past, 0, sizeof(Past))
    past_learn(past, y)
    for i in range(n_members + N_TRACKERS):
        top.prediction[i] = y
    for i in range(n_rows):
        row = rows + i
        for j in range(row.first, row.first + row.n_members):
            top.weight[j] = row.prior
            total += row.prior
        if row.kind == EWMA or row.kind == HOLT:
            memory[row.offset] = y
            if row.kind == HOLT:
                memory[row.offset + 1] = 0.0
        elif is_mixture(row.kind):
            mixture_start(<Mixture*>(memory + row.offset), <double>s.row, y, w,
                          row.kind == TRENDS or row.kind == ROBUST_TRENDS,
                          row.n_members, row.a)
        else:
            size = sizeof(Ridge)
            if row.kind == SEASON:
                size += sizeof(Profile)
            memset(memory + row.offset, 0, size)
            features(<Ridge*>(memory + row.offset), row, s, past, NULL)
    for j in range(n_members):
        top.weight[j] /= total
        for k in range(1, N_TRACKERS):
            top.weight[k * MAX_MEMBERS + j] = top.weight[j]
    for k in range(N_TRACKERS):
        top.share[n_members + k] = 1.0


cdef void recalibrate(Pool* s, double* memory, const Row* rows, Py_ssize_t n_rows,
                      Py_ssize_t n_members) noexcept nogil:
    """Look back at the last labels; start again if old ones dwarf them.

    Where the noise is ten times as large as the whole range of the last labels,
    something enormous came before them: an outlier among the first labels, or a
    storm that is over.
    """
    cdef Past* past = past_of(memory)
    cdef Py_ssize_t n = <Py_ssize_t>min(min(s.round // 2, 64), past.n)
    cdef Py_ssize_t k
    cdef double y, width
    s.near_low = s.near_high = s.last
    for k in range(n):
        y = lagged(past, k, s.last)
        s.near_low = min(s.near_low, y)
        s.near_high = max(s.near_high, y)
    width = s.near_high - s.near_low
    if n > 2 and width > 0.0 and s.variance > 100.0 * width * width:
        s.variance = width * width / 16.0
        s.low = s.near_low
        s.high = s.near_high
        restart(s, memory, rows, n_rows, n_members, s.last, 1.0)


cdef inline bint held_back(Pool* s, double y) noexcept nogil:
    """Whether a label is so far off that the next ones must confirm it.

    What keeps coming back is no outlier: the third label that leaves a constant, and
    more than five in the last 64 or so, need no other to confirm them.
    """
    cdef double width = s.high - s.low
    cdef double beyond = max(y - s.high, s.low - y)
    if width > 0.0:
        s.n_far *= FADING
    if s.round <= 4 or beyond <= FAR * width:
        s.n_held = 0
        return False
    s.n_far += 1.0
    s.n_held += 1
    if s.n_far > (5.0 if width > 0.0 else 2.0):
        return False
    return s.n_held <= (3 if width > 0.0 and beyond > VERY_FAR * width else 1)


cdef void aggregate(Pool* s, Top* top, Py_ssize_t n_members, double y, double w,
                    bint weigh) noexcept nogil:
    """Trackers, top and noise learn from the errors of the round.

    Errors and gaps that may be rounding tell nothing.
    """
    cdef double v = noise_variance(s)
    cdef double x = s.output
    cdef double error, most, square
    cdef double least = rounding(s)
    cdef double largest = least
    cdef double factor[MAX_MEMBERS]
    cdef Py_ssize_t n = n_members + N_TRACKERS
    cdef Py_ssize_t j, k
    if weigh:
        sktv_student(n_members, y, 1.5 * v / w, top.prediction, factor)
        for k in range(N_TRACKERS):
            sktv_share(n_members, SHARES[k], factor, top.weight + k * MAX_MEMBERS)
    # Errors are drawn in to five standard deviations, gaps to ten, so that a
    # single round can't outweigh hundreds.
    error = x - y
    most = LARGEST
    if s.variance > 0.0:
        most = 10.0 * sqrt(v)
        error = clip(error, -0.5 * most, 0.5 * most)
    for j in range(n):
        largest = max(largest, fabs(x - top.prediction[j]))
    largest = 2.0 * w * error * min(largest, most) if largest > least else 0.0
    largest = max(largest * largest, s.largest)
    sktv_ml_poly(n, x, 2.0 * w * error, largest - s.largest, least, most,
                 0.02 * w, 100.0 * v, top.prediction, top.regret, top.variance)
    s.largest = largest
    square = w * (y - x) * (y - x)
    if fabs(y - x) <= least:
        return
    if s.variance == 0.0:
        # The first error is as likely as not a trend's.
        s.variance = 0.1 * square
    else:
        sktv_winsorised(square, max(0.01, 1.0 / (s.round - 1)), &s.variance,
                        &s.n_surprises)


cdef void advance(Pool* s, double* memory, const Row* rows, Py_ssize_t n_rows,
                  double y, double z, double w, double v, bint weigh) noexcept nogil:
    """The members learn y (the robust ones z) and predict the next label."""
    cdef Past* past = past_of(memory)
    cdef double* prediction = (<Top*>memory).prediction
    cdef Ridge* ridge
    cdef Profile* profile
    cdef double gain
    cdef Py_ssize_t i, j
    cdef const Row* row
    cdef double* state
    for i in range(n_rows):
        row = rows + i
        state = memory + row.offset
        if row.kind == EWMA:
            prediction[row.first] = ewma_learn(state, y, gain_of(row.a[0], w, s.mass))
        elif row.kind == HOLT:
            gain = w * row.a[0] / (1.0 - row.a[0] + w * row.a[0])
            prediction[row.first] = holt_learn(
                state, y, gain_of(row.a[0], w, s.mass), gain * row.a[0] * row.a[1])
        elif is_mixture(row.kind):
            mixture_learn(
                <Mixture*>state, <double>s.row, z if row.kind >= ROBUST_MEANS else y,
                w, v, weigh, row.kind == TRENDS or row.kind == ROBUST_TRENDS,
                row.kind >= ROBUST_MEANS, row.n_members, row.a,
                prediction + row.first)
        else:
            ridge = <Ridge*>state
            profile = NULL
            j = row.first
            if s.age > 2:
                ridge_learn(ridge, y, w,
                            row.a[0] if row.kind == REVERSION else
                            row.a[2] if row.kind == SEASON else row.a[1])
            if row.kind == SEASON:
                profile = <Profile*>(state + sizeof(Ridge) // sizeof(double))
                prediction[j] = profile_learn(profile, past, s.round, y, row.a[0],
                                              row.a[1])
                j += 1
            features(ridge, row, s, past, profile)
            # Growth and seasons reach beyond what was seen: the present features
            # must not shrink their predictions.
            prediction[j] = ridge_predict(
                ridge, noise_variance(s),
                1.0 if row.kind == REVERSION or row.kind == LAGS else 0.0)
        for j in range(row.first, row.first + row.n_members):
            if prediction[j] != prediction[j]:
                prediction[j] = s.last
            prediction[j] = within_reach(s, prediction[j])


cdef void predict(Pool* s, Top* top, Py_ssize_t n_members) noexcept nogil:
    """Trackers and top: weights are positive regrets over their variances.

    The two steadiest trackers have a standard deviation of their regret on top: they
    are what to believe in until regrets tell more. Rounding must not lead a mean out
    of reach: where all labels are equal, so are all predictions.
    """
    cdef Py_ssize_t n = n_members + N_TRACKERS
    cdef Py_ssize_t j, k
    cdef double weight, total, dot
    for k in range(N_TRACKERS):
        sktv_sums(n_members, top.weight + k * MAX_MEMBERS, top.prediction, &total, &dot)
        top.prediction[n_members + k] = within_reach(s, dot / total)
    for j in range(n):
        weight = top.regret[j]
        if n_members <= j < n_members + N_STEADY:
            weight += sqrt(top.variance[j])
        top.share[j] = (weight / top.variance[j]
                        if weight > 0.0 and top.variance[j] > 0.0 else 0.0)
    sktv_sums(n, top.share, top.prediction, &total, &dot)
    if not total > 0.0:
        for k in range(N_TRACKERS):
            top.share[n_members + k] = 1.0
        sktv_sums(n, top.share, top.prediction, &total, &dot)
    s.output = within_reach(s, dot / total)


cdef void learn(Pool* s, double* memory, const Row* rows, Py_ssize_t n_rows,
                Py_ssize_t n_members, double y, double w) noexcept nogil:
    """One label, in units of the stream, for the pool alone."""
    cdef Past* past = past_of(memory)
    cdef double x = s.output
    cdef double v = noise_variance(s)
    cdef double z
    cdef bint weigh, held
    s.round += 1
    if s.age == 0:
        s.low = s.high = s.near_low = s.near_high = y
        restart(s, memory, rows, n_rows, n_members, y, w)
        return
    held = held_back(s, y)
    if held:
        y = x
    elif s.n_held:
        # Confirmed: the level is another one.
        s.n_held = 0
        s.n_far = 0.0
        s.low = min(s.low, y)
        s.high = max(s.high, y)
        restart(s, memory, rows, n_rows, n_members, y, w)
        return
    s.age += 1
    s.mass += w
    # A first surprise on one side is an outlier until a second confirms it.
    z = y
    if s.round > 5 and fabs(y - x) > 5.0 * sqrt(v) and s.side != (1 if y > x else -1):
        z = x
        s.side = 1 if y > x else -1
    else:
        s.side = 0
    weigh = s.age > 2 and s.high > s.low
    if not held:
        aggregate(s, <Top*>memory, n_members, y, w, weigh)
        s.low = min(s.low, y)
        s.high = max(s.high, y)
    s.near_low = min(s.near_low, y)
    s.near_high = max(s.near_high, y)
    past_learn(past, y)
    if past.n % (4 if past.n < 64 else 64) == 0:
        find_period(past)
    s.mean += w / s.mass * (y - s.mean)
    s.last = y
    advance(s, memory, rows, n_rows, y, z, w, v, weigh)
    predict(s, <Top*>memory, n_members)
    if s.round % 32 == 0 or 5 < s.round < 17 or s.round == 24:
        recalibrate(s, memory, rows, n_rows, n_members)


cdef inline double pool_output(const Pool* s) noexcept nogil:
    """The pool's output, within 1.5 B for the guarantee."""
    return clip(s.output * s.unit, -1.5 * s.bound, 1.5 * s.bound)


cdef inline void guard(Pool* s, double y, double w, double guarded) noexcept nogil:
    """Account of the pool's output against the guard's prediction of y.

    The excess is that of the pool's loss over the guard's in units of B^2 W, with
    the largest B = |y| and W = w so far. Until it exceeds 4 the output is the
    pool's; then it is counted anew, with y and w drawn in to the B and W before.
    """
    cdef double x = pool_output(s)
    cdef double b = max(s.bound, fabs(y))
    cdef double largest = max(s.weight_bound, w)
    if s.tripped:
        y = clip(y, -s.bound, s.bound)
        w = min(w, s.weight_bound)
    if b > 0.0:
        s.excess *= (s.bound / b) * (s.bound / b) * (s.weight_bound / largest)
        s.excess += w / largest * ((guarded - x) / b) * ((y - x + y - guarded) / b)
    s.bound = b
    s.weight_bound = largest
    if not s.tripped and s.excess > 4.0:
        s.tripped = True
        s.excess = 0.0


cdef inline double guard_share(const Pool* s) noexcept nogil:
    """How much of the output is the guard's: exponential weights."""
    if not s.tripped:
        return 0.0
    return 1.0 / (1.0 + exp(-max(s.excess / 13.0, -700.0)))


cdef void pool_learn(Pool* s, double* memory, const Row* rows, Py_ssize_t n_rows,
                     Py_ssize_t n_members, double y, double w, double guarded,
                     double next_guarded) noexcept nogil:
    cdef int exponent
    cdef double share
    guard(s, y, w, guarded)
    if y != 0.0 and (s.unit == 0.0 or fabs(y) > LARGEST * s.unit):
        # In other units, nothing of the past is of any size. Zeros have none.
        if s.unit > 0.0:
            s.age = s.n_held = s.n_surprises = 0
            s.output = s.variance = s.n_far = 0.0
        frexp(y, &exponent)
        s.unit = ldexp(1.0, max(exponent, -1020))
    if s.unit > 0.0:
        y /= s.unit
    # Weights count relative to their mean: a constant weight changes nothing.
    s.mass *= s.mean_weight
    s.mean_weight += (w - s.mean_weight) / (s.round + 1)
    s.mass /= s.mean_weight
    w = clip(w / s.mean_weight, 1e-6, 1e6)
    learn(s, memory, rows, n_rows, n_members, y, w)
    share = guard_share(s)
    s.forecast = (1.0 - share) * pool_output(s) + share * next_guarded


def make_layout(table):
    """Places of the pool's members: (rows, size of a stream's memory).

    Parameters
    ----------
    table : sequence of (name, kind, parameters, prior)
    """
    rows = np.zeros(len(table), dtype=ROW_DTYPE)
    sizes = {EWMA: 1, HOLT: 2, SEASON: (sizeof(Ridge) + sizeof(Profile)) // 8}
    first, offset = 0, (sizeof(Top) + sizeof(Past)) // sizeof(double)
    for row, (_, kind, parameters, prior) in zip(rows, table):
        n_members = 2 if kind == SEASON else 1
        size = sizes.get(kind, sizeof(Ridge) // sizeof(double))
        if is_mixture(kind):
            n_members, size = len(parameters), sizeof(Mixture) // sizeof(double)
        if kind == LAGS or kind == DIFFERENCES:
            assert parameters[0] < MAX_FEATURES
        row["kind"], row["first"], row["n_members"] = kind, first, n_members
        row["offset"], row["prior"] = offset, prior
        row["a"][: len(parameters)] = parameters
        first += n_members
        offset += size
    assert first + N_TRACKERS <= MAX_MEMBERS
    return rows, offset


cdef void pass_over(Pool* s, double* memory, const Row* rows,
                    Py_ssize_t n_rows) noexcept nogil:
    """A row without a label: the newborns have still to see their first."""
    cdef Mixture* mixture
    cdef Py_ssize_t i
    for i in range(n_rows):
        if is_mixture(rows[i].kind) and s.age > 0:
            mixture = <Mixture*>(memory + rows[i].offset)
            mixture.birth[<Py_ssize_t>mixture.n - 1] = <double>(s.row + 1)


def new_pool(rows, Py_ssize_t size):
    """State of a pool before the first row: (pool, memory of its members).

    The pool is an array of bytes, to be viewed as POOL_DTYPE.
    """
    memory = np.zeros(size)
    top = top_of(memory)
    prior = np.repeat(rows["prior"], rows["n_members"])
    top["weight"][:, : len(prior)] = prior / prior.sum()
    top["share"][len(prior) : len(prior) + N_TRACKERS] = 1.0
    return np.zeros(1, dtype=POOL_DTYPE).view(np.uint8), memory


def top_of(memory):
    """What stands at the start of the memory, as TOP_DTYPE."""
    return memory[: sizeof(Top) // sizeof(double)].view(TOP_DTYPE)[0]


def pool_pass(const double[:] y, const double[:] sample_weight, unsigned char[::1] pool,
              double[::1] memory, unsigned char[::1] layout, double[:] predictions,
              double[:] estimates):
    """Run rows through a pool, in place.

    On entry predictions[i] and estimates[i] are those of the guard, made before
    and after y[i] is seen; on return they are the output's.
    """
    cdef Pool* s = <Pool*>struct_of(pool, sizeof(Pool))
    cdef const Row* rows = <const Row*>&layout[0]
    cdef Py_ssize_t n_rows = layout.shape[0] // sizeof(Row)
    cdef Py_ssize_t n_members = rows[n_rows - 1].first + rows[n_rows - 1].n_members
    cdef Py_ssize_t i
    cdef double guarded
    with nogil:
        for i in range(y.shape[0]):
            guarded = predictions[i]
            predictions[i] = s.forecast
            if y[i] == y[i] and sample_weight[i] > 0.0:
                pool_learn(s, &memory[0], rows, n_rows, n_members, y[i],
                           sample_weight[i], guarded, estimates[i])
            else:
                pass_over(s, &memory[0], rows, n_rows)
            s.row += 1
            estimates[i] = s.forecast


def forecast_of(unsigned char[::1] pool):
    """The forecast of a pool with its guard."""
    return (<Pool*>struct_of(pool, sizeof(Pool))).forecast


def learn_one(double y, unsigned char[::1] stream, double[:, ::1] table,
              unsigned char[::1] spread, int code, bint pruned, unsigned char[::1] pool,
              double[::1] memory, unsigned char[::1] layout):
    """One label of weight 1, as by flh_pass, pool_pass and spread_pass."""
    cdef Stream* guard = <Stream*>struct_of(stream, sizeof(Stream))
    cdef Pool* s = <Pool*>struct_of(pool, sizeof(Pool))
    cdef const Row* rows = <const Row*>&layout[0]
    cdef Py_ssize_t n_rows = layout.shape[0] // sizeof(Row)
    cdef Py_ssize_t n_members = rows[n_rows - 1].first + rows[n_rows - 1].n_members
    cdef double guarded = guard.forecast
    account(<Spread*>struct_of(spread, sizeof(Spread)), y, s.forecast)
    flh_learn(guard, &table[0, 0], table.shape[1], y, 1.0, code, 0.0, pruned)
    guard.clock += 1
    pool_learn(s, &memory[0], rows, n_rows, n_members, y, 1.0, guarded,
               guard.forecast)
    s.row += 1


def noise_scale(unsigned char[::1] pool):
    """Standard deviation of the noise, in the units of the labels."""
    cdef Pool* s = <Pool*>struct_of(pool, sizeof(Pool))
    return sqrt(s.variance) * s.unit


def guard_weight(unsigned char[::1] pool):
    """How much of the next output is the guard's."""
    return guard_share(<Pool*>struct_of(pool, sizeof(Pool)))


def member_weights(memory, Py_ssize_t n_members):
    """How much of the pool's next output each member accounts for; the sum is 1."""
    top = top_of(memory)
    share = top["share"][: n_members + N_TRACKERS] / top["share"].sum()
    return share[:n_members] + share[n_members:] @ top["weight"][:, :n_members]
