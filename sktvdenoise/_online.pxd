# Codes and state of the streaming kernels, in one place.

cpdef enum Rate:
    FIXED = 0    # the given learning rate, weighted mean
    THEORY = 1   # 1 / (8 B^2), weighted mean
    MIXABLE = 2  # 1 / (2 B^2), Vovk's substitution

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
    double last           # last label learned
    double forecast       # prediction for the next round
    double bound          # B in force
    double weight_bound   # largest sample weight in force

# How far off predictions have been of late.
cdef struct Spread:
    long long n             # labels accounted for
    long long n_surprises
    double variance         # winsorised mean square of the errors
    double log_stretch      # logarithm of what makes 90 % intervals hold
    double std


cdef void learn(Stream* s, double* table, Py_ssize_t capacity, double y, double w,
                int code, double rate, bint pruned) noexcept nogil
cdef void account(Spread* s, double y, double prediction) noexcept nogil
cdef void* struct_of(unsigned char[::1] array, Py_ssize_t size) except NULL
