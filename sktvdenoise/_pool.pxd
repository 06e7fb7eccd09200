# Codes and state of the pool behind the default rate.

cpdef enum Kind:
    EWMA = 0          # gain
    HOLT = 1          # gain of the level, gain of the slope relative to its square
    REVERSION = 2     # forgetting
    LAGS = 3          # number of lags, forgetting
    DIFFERENCES = 4   # number of lags, forgetting
    MEANS = 5         # hazards
    TRENDS = 6        # hazards
    ROBUST_MEANS = 7  # hazard
    ROBUST_TRENDS = 8  # hazard
    SEASON = 9        # gain of the level, gain of the season, forgetting

cdef enum:
    N_TRACKERS = 4
    MAX_MEMBERS = 40  # trackers included

# A row of the pool's table: one or, for a mixture, several members.
cdef struct Row:
    long long kind
    long long first      # number of its first member
    long long n_members
    long long offset     # of its state, in the memory of a stream
    double prior         # weight of each of its members at the start
    double a[3]

# What the pool knows of one stream beside the states of its members. Labels are
# kept in units of a power of two, `unit`, near the first label that isn't 0.
cdef struct Pool:
    long long row        # rows of the stream, skipped ones included
    long long round      # rounds since the start of the stream
    long long age        # rounds since the last start of the pool
    long long n_held     # labels in a row that were far off, and held back
    long long side       # of the last label that was replaced by its prediction
    long long n_surprises
    long long tripped    # whether the guard takes part in the output
    double unit
    double mass          # sum of the sample weights since the last start
    double mean
    double last
    double low           # range of the labels that were accepted
    double high
    double near_low      # range of the last labels, 32 to 96 of them
    double near_high
    double variance      # of the noise: winsorised square of the errors
    double output        # of the pool alone
    double forecast      # with the guard, in units of the labels
    double largest       # square of the largest regret of a round
    double excess        # of the pool's loss over the guard's, in units of B^2 W
    double bound         # B: largest label in absolute value
    double weight_bound  # W: largest sample weight

cdef struct Top:
    double prediction[MAX_MEMBERS]
    double regret[MAX_MEMBERS]
    double variance[MAX_MEMBERS]
    double share[MAX_MEMBERS]                # of the output, up to a factor
    double weight[N_TRACKERS * MAX_MEMBERS]  # of the members, in each tracker
