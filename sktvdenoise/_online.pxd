# Codes and state of the streaming kernels, in one place.

cpdef enum Rate:
    FIXED = 0    # the given learning rate, weighted mean
    THEORY = 1   # 1 / (8 B^2), weighted mean
    MIXABLE = 2  # 1 / (2 B^2), Vovk's substitution
    AUTO = 3     # 1 / (2 s^2), s the scale of the noise, weighted mean

# Rows of an expert table: one column per living expert, in order of birth.
cpdef enum Expert:
    BIRTH = 0       # row of the stream that is the first this expert sees
    ROUND = 1       # round of the current epoch in which it starts, from 1
    MEAN = 2        # its prediction: mean of the labels since birth
    MASS = 3        # sum of the sample weights since birth
    LOG_WEIGHT = 4  # up to a constant common to all
    WEIGHT = 5      # exp(LOG_WEIGHT)
    N_ROWS = 6

# The rest of the state of one stream. All fields take eight bytes.
cdef struct Stream:
    long long clock       # rows seen, learned from or not
    long long round       # rounds learned in the current epoch
    long long n_alive     # experts, the newborn of the next round included
    long long n_noise     # first differences seen by the noise scale
    double last           # last label learned
    double forecast       # prediction for the next round
    double bound          # B in force
    double weight_bound   # largest sample weight in force
    double noise_scale    # scale of the noise, 0 while unknown
