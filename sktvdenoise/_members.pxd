# Members of the pool behind the default rate: forecasters of the next label, each a
# plain function of its state. The references in numpy are in experts.py.
#
# Legend: y the label, w its sample weight, s the variance of the noise, m a level,
# b a slope.
from libc.math cimport sqrt
from libc.string cimport memmove, memset

cdef extern from "_pool.h" nogil:
    # What a newborn expert knows, in units of s: the variances of level and slope.
    const double NEWBORN_VARIANCE "SKTV_NEWBORN_VARIANCE"
    const double SLOPE_VARIANCE "SKTV_SLOPE_VARIANCE"
    void sktv_sums(Py_ssize_t n, const double* a, const double* b,
                   double* total, double* dot)
    void sktv_exponents(Py_ssize_t n, double y, double noise, double s,
                        const double* m, const double* v, double* exponent,
                        double* norm)
    void sktv_gaussian(Py_ssize_t n, double largest, const double* norm,
                       double* density)
    void sktv_heavy(Py_ssize_t n, double y, double noise, double s,
                    const double* m, const double* v, double* density)
    void sktv_gram(Py_ssize_t d, double w, double forgetting, const double* x,
                   double* gram)
    double sktv_ridge(Py_ssize_t d, double penalty, double present,
                      const double* gram, const double* x, const double* moment)
    void sktv_products(Py_ssize_t n, double d, const double* past, double* sums)

cdef enum:
    CAPACITY = 10     # experts of a mixture, those of the next round included
    N_KEPT = 8        # experts of a mixture that outlive a round
    N_YOUNG = 3       # of these, the youngest that are never dropped
    N_HAZARDS = 3     # weightings of the same experts, at most
    MAX_FEATURES = 14
    N_COLUMNS = 16
    RING = 1024       # labels kept
    MAX_PERIOD = 400  # lags watched


# ------------------------------------------------------------------ the past
cdef struct Past:
    double n                        # labels kept since the start
    double period                   # lag at which differences repeat, or 0
    double power                    # sum of squares of the differences
    double labels[RING]             # label number i at place i % RING
    double differences[2 * MAX_PERIOD]  # the newest first, twice in a row
    double products[MAX_PERIOD]     # sums of products at lags 1, 2, ...


cdef inline double lagged(const Past* past, Py_ssize_t lag,
                          double otherwise) noexcept nogil:
    """The label `lag` rounds before the last one."""
    cdef Py_ssize_t n = <Py_ssize_t>past.n
    return past.labels[(n - 1 - lag) % RING] if lag < n else otherwise


cdef inline void past_learn(Past* past, double y) noexcept nogil:
    """Keep y, and add to the autocovariances of the differences.

    A difference is drawn in to three standard deviations. The newest stands at
    place i and at i + MAX_PERIOD, so that those before it follow without a break.
    """
    cdef Py_ssize_t n = <Py_ssize_t>past.n
    cdef Py_ssize_t i
    cdef double d, most
    if n > 0:
        d = y - past.labels[(n - 1) % RING]
        if n > 8:
            most = 3.0 * sqrt(past.power / (n - 1))
            d = min(max(d, -most), most)
        i = MAX_PERIOD - 1 - (n - 1) % MAX_PERIOD
        sktv_products(MAX_PERIOD, d, past.differences + i + 1, past.products)
        past.differences[i] = d
        past.differences[i + MAX_PERIOD] = d
        past.power += d * d
    past.labels[n % RING] = y
    past.n += 1


cdef inline void find_period(Past* past) noexcept nogil:
    """The lag with the largest autocorrelation of the differences.

    A longer lag must do a tenth better, so that a multiple of the period is no
    rival; an autocorrelation below three standard errors is none.
    """
    cdef double n = past.n - 1
    cdef double best = 0.0, rho
    cdef Py_ssize_t k, end = <Py_ssize_t>min(MAX_PERIOD - 1, n / 2)
    past.period = 0
    if past.power <= 0:
        return
    for k in range(2, end):
        if (past.products[k - 1] > past.products[k - 2]
                and past.products[k - 1] >= past.products[k]):
            rho = past.products[k - 1] / past.power * n / (n - k)
            rho -= 3.0 / sqrt(n - k)
            if rho > 1.1 * best:
                best = rho
                past.period = k


# ------------------------------------------------- levels, trends, one season
cdef inline double gain_of(double a, double w, double mass) noexcept nogil:
    """Gain a for weight 1, as of a Kalman filter; at least that of the mean."""
    return max(w * a / (1.0 - a + w * a), w / mass)


cdef inline double ewma_learn(double* m, double y, double gain) noexcept nogil:
    m[0] += gain * (y - m[0])
    return m[0]


cdef inline double holt_learn(double* state, double y, double gain,
                              double slope_gain) noexcept nogil:
    """Level and slope: state = (m, b)."""
    cdef double error = y - state[0] - state[1]
    state[0] += state[1] + gain * error
    state[1] += slope_gain * error
    return state[0] + state[1]


cdef struct Profile:
    double period
    double level
    double deviation[MAX_PERIOD]  # from the level, by round % period


cdef inline double profile_learn(Profile* h, const Past* past, long long round,
                                double y, double a, double g) noexcept nogil:
    """Level and season (Holt and Winters) with the period of the past.

    A new period starts from the last whole season.
    """
    cdef Py_ssize_t p = <Py_ssize_t>past.period
    cdef Py_ssize_t k
    cdef double error
    if p != h.period:
        h.period = p
        h.level = 0.0
        for k in range(p):
            h.level += lagged(past, k, y) / p
        for k in range(p):
            h.deviation[(round - k) % p] = lagged(past, k, y) - h.level
    elif p > 0:
        error = y - h.level - h.deviation[round % p]
        h.level += a * error
        h.deviation[round % p] += g * (1.0 - a) * error
    return h.level + h.deviation[(round + 1) % p] if p > 0 else y


# ------------------------------------------------------------ ridge regression
cdef struct Ridge:
    double n_features
    double base                   # predicted is base + x' theta
    double x[MAX_FEATURES]
    double moment[MAX_FEATURES]   # sum of x (y - base)
    double gram[MAX_FEATURES * N_COLUMNS]  # sum of x x', upper triangle


cdef inline void ridge_learn(Ridge* r, double y, double w,
                             double forgetting) noexcept nogil:
    cdef Py_ssize_t d = <Py_ssize_t>r.n_features
    cdef Py_ssize_t i
    for i in range(d):
        r.moment[i] = forgetting * r.moment[i] + w * (y - r.base) * r.x[i]
    sktv_gram(d, w, forgetting, r.x, r.gram)


cdef inline double ridge_predict(const Ridge* r, double penalty,
                                 double present) noexcept nogil:
    """base + x' (G + present x x' + penalty I)^-1 moment.

    With present = 1 it is the forecaster of Vovk, Azoury and Warmuth.
    """
    return r.base + sktv_ridge(<Py_ssize_t>r.n_features, penalty, present, r.gram,
                               r.x, r.moment)


# ------------------------------------------- mixtures over the last change point
cdef struct Mixture:
    double n                       # experts, the newborn last
    double birth[CAPACITY]         # row whose label is the first that it sees
    double m[CAPACITY]             # level forecast
    double b[CAPACITY]             # slope
    double v[CAPACITY]             # variance of m, in units of s
    double cov[CAPACITY]           # covariance of m and b
    double u[CAPACITY]             # variance of b
    double w[N_HAZARDS * CAPACITY]  # weights, a row for each hazard


cdef inline void be_born(Mixture* x, Py_ssize_t j, double birth,
                         double y) noexcept nogil:
    """Expert j predicts the last label y, and knows nothing."""
    x.birth[j] = birth
    x.m[j] = y
    x.b[j] = 0.0
    x.v[j] = NEWBORN_VARIANCE
    x.cov[j] = 0.0
    x.u[j] = SLOPE_VARIANCE
    x.n = j + 1


cdef inline void mixture_drop(Mixture* x, Py_ssize_t n_hazards) noexcept nogil:
    """Drop the expert whose largest weight is the smallest, but no young one."""
    cdef Py_ssize_t n = <Py_ssize_t>x.n
    cdef Py_ssize_t j, h, worst = 0
    cdef double largest, least = 2.0, total
    for j in range(n - N_YOUNG):
        largest = 0.0
        for h in range(n_hazards):
            largest = max(largest, x.w[h * CAPACITY + j])
        if largest < least:
            least = largest
            worst = j
    # The fields from birth on, as the rows of a matrix.
    cdef double* column = <double*>x + 1 + worst
    x.n = n - 1
    for h in range(6 + n_hazards):
        memmove(column + h * CAPACITY, column + h * CAPACITY + 1,
                (n - 1 - worst) * sizeof(double))
    for h in range(n_hazards):
        total = 0.0
        for j in range(n - 1):
            total += x.w[h * CAPACITY + j]
        for j in range(n - 1):
            x.w[h * CAPACITY + j] /= total


cdef inline void mixture_learn(Mixture* x, double row, double y, double w, double s,
                               bint weigh, bint trends, bint heavy,
                               Py_ssize_t n_hazards, const double* hazards,
                               double* predictions) noexcept nogil:
    """One round of Bayesian change-point detection with bounded memory.

    Every expert is a Kalman filter for a level (and a slope, with `trends`) that
    has stood since its birth; the weights are the posterior of births when a change
    comes before each round with a given hazard. With `heavy` tails a label that is
    far from a forecast moves it less.
    """
    cdef double density[CAPACITY]
    cdef double norm[CAPACITY]
    cdef double total, error, noise, gain, slope_gain, largest
    cdef Py_ssize_t n = <Py_ssize_t>x.n
    cdef Py_ssize_t j, h
    if weigh:
        if heavy:
            sktv_heavy(n, y, 1.0 / w, s, x.m, x.v, density)
        else:
            sktv_exponents(n, y, 1.0 / w, s, x.m, x.v, density, norm)
            largest = density[0]
            for j in range(1, n):
                largest = max(largest, density[j])
            sktv_gaussian(n, largest, norm, density)
        for h in range(n_hazards):
            total = 0.0
            for j in range(n):
                x.w[h * CAPACITY + j] = max(x.w[h * CAPACITY + j] * density[j],
                                            1e-60)
                total += x.w[h * CAPACITY + j]
            for j in range(n):
                x.w[h * CAPACITY + j] /= total
    for j in range(n):
        noise = 1.0 / w
        if j == n - 1:
            # The first label of the newborn is all that it knows.
            x.m[j] = y
            x.v[j] = noise
        else:
            error = y - x.m[j]
            if heavy and weigh:
                noise *= 0.75 + 0.25 * error * error / (s * (noise + x.v[j]))
            gain = x.v[j] / (noise + x.v[j])
            slope_gain = x.cov[j] / (noise + x.v[j])
            x.m[j] += gain * error
            x.b[j] += slope_gain * error
            x.u[j] -= slope_gain * x.cov[j]
            x.cov[j] -= gain * x.cov[j]
            x.v[j] -= gain * x.v[j]
        if trends:
            x.m[j] += x.b[j]
            x.v[j] += 2.0 * x.cov[j] + x.u[j]
            x.cov[j] += x.u[j]
    if n > N_KEPT:
        mixture_drop(x, n_hazards)
        n -= 1
    be_born(x, n, row + 1.0, y)
    for h in range(n_hazards):
        for j in range(n):
            x.w[h * CAPACITY + j] *= 1.0 - hazards[h]
        x.w[h * CAPACITY + n] = hazards[h]
        sktv_sums(n + 1, x.w + h * CAPACITY, x.m, &total, predictions + h)


cdef inline void mixture_start(Mixture* x, double row, double y, double w,
                               bint trends, Py_ssize_t n_hazards,
                               const double* hazards) noexcept nogil:
    """The label y of the given row is the first that there is."""
    cdef double unused[N_HAZARDS]
    cdef Py_ssize_t h
    memset(x, 0, sizeof(Mixture))
    be_born(x, 0, row, y)
    for h in range(n_hazards):
        x.w[h * CAPACITY] = 1.0
    mixture_learn(x, row, y, w, 1.0, False, trends, False, n_hazards, hazards,
                  unused)
