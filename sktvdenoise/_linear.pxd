# Codes and state of the streaming kernel with covariates, in one place.

cpdef enum Base:
    VAW = 0    # ridge with the present row counted in, its label taken for 0
    RIDGE = 1
    ONS = 2    # online Newton step
    OGD = 3    # online gradient descent

cpdef enum LossCode:
    SQUARED = 0   # (y - z)^2
    POISSON = 1   # exp(z) - y z + y ln y - y
    LOGISTIC = 2  # ln(1 + exp(z)) - y z

# Rows of a block of experts, one lane each; then p rows of coefficients and, but for
# gradient descent, p of D and p (p - 1) / 2 of U.
cpdef enum Field:
    BIRTH_ROW = 0   # row of the stream that is the first this expert sees
    BIRTH_ROUND = 1  # round of the current epoch in which it starts, from 1
    MASS_SEEN = 2   # sum of the weights since birth
    LOG_SHARE = 3   # logarithm of its weight, up to a constant common to all
    SHARE = 4       # exp(LOG_SHARE)
    ORIGIN = 5      # prior mean of the intercept, of VAW and RIDGE
    N_FIELDS = 6

# What precedes the blocks. All fields take eight bytes.
cdef struct Linear:
    long long clock       # rows seen, learned from or not
    long long round       # rounds learned in the current epoch
    long long n_alive     # experts, the newborn of the next round included
    long long newborn     # its place
    long long p           # coefficients, the intercept included
    long long intercept   # whether the last entry of each row is a 1
    long long base        # of Base
    long long loss        # of LossCode
    long long pruned
    long long from_label  # whether intercepts start where they explain a label
    double guess          # prediction of the newborn of VAW and RIDGE
    double rate           # of FLH
    double weight_unit    # weights are divided by it
    double prior          # variance of a newborn's coefficients: 1 / ridge, 1 / eps
    double newton         # beta of the Newton step
    double convexity      # H of gradient descent: its k-th step is 1 / (H k)
    double box            # largest coefficient of both
    double low            # predictions of experts are drawn in to this range
    double high
    double label_bound    # where one of these is exceeded, the caller starts again
    double row_bound
    double weight_bound
