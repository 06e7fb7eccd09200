# Codes and state of the ladder, the pool behind adaptive linear regression.

cpdef enum Kind:
    WALK = 0         # q, q of the intercept, prior variance, that of the intercept
    COMMON_WALK = 1  # the same, with all features on one scale
    RIDGE = 2        # forgetting, ridge
    LEVEL = 3        # q; no features
    N_KINDS = 4

cpdef enum Noise:
    OWN = 0     # a member's errors tell its variance: Student's density
    COMMON = 1  # the tracker's errors tell it for all: Gaussian density

cdef enum:
    MAX_TRACKERS = 4
    N_PARAMETERS = 4

cdef struct Tracker:
    long long noise     # of Noise
    double keep         # forgetting of squared errors
    double share        # of the weights that the prior gets in a late round
    double squares      # of its errors, forgotten and winsorised,
    double count        # and how many they are
    double prediction

# What the ladder knows beside the states of its members. All fields take eight bytes.
# Labels are kept in units of a power of two, `unit`, near the first that isn't 0.
cdef struct Ladder:
    long long n_features
    long long n_trackers
    long long n_members[N_KINDS]  # in multiples of the block
    long long round       # rows learned
    long long check       # rows learned when the ladder next looks back
    long long n_held      # rows held back since the last that was learned
    long long tripped     # whether the guard takes part in the output
    double unit
    double mean_weight
    double first_label
    double low            # range of the labels, 0 included
    double high
    double recent_label   # largest absolute value since the ladder looked back
    double n_far          # rows far off, forgotten
    double output         # of the ladder alone
    double excess         # of its loss over the guard's, in units of B^2 W
    double bound          # B: largest label in absolute value
    double weight_bound   # W: largest sample weight
    Tracker tracker[MAX_TRACKERS]
