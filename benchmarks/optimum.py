"""What any forecaster could reach on few jumps, with Gaussian and with t noise.

    python benchmarks/optimum.py [--seeds N]

The exact Bayesian filter on a grid of levels, which knows the law of the noise, the
range of the levels and the rate of jumps, beside the default on the same streams:
eight jumps of 3-5 sigma in 16384 rounds, squared error to the truth, summed.
"""

import argparse

import numpy as np

from sktvdenoise import OnlineTVDenoiser

N_ROUNDS, HAZARD = 16384, 5e-4


def exact_filter(y, likelihood, low, high, n_levels=600):
    levels = np.linspace(low, high, n_levels)
    belief = np.full(n_levels, 1 / n_levels)
    predictions = np.empty(len(y))
    for t, label in enumerate(y):
        belief = (1 - HAZARD) * belief + HAZARD / n_levels
        predictions[t] = belief @ levels
        belief = belief * likelihood(label - levels)
        belief /= belief.sum()
    return predictions


LAWS = {
    "Gaussian": (
        lambda rng: rng.standard_normal(N_ROUNDS),
        lambda e: np.exp(-0.5 * e**2),
    ),
    "t, 3 degrees of freedom": (
        lambda rng: rng.standard_t(3, N_ROUNDS) / np.sqrt(3),
        lambda e: (1 + e**2) ** -2,
    ),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, metavar="N")
    seeds = range(parser.parse_args().seeds)
    print("| noise | exact filter | default |\n|---|---|---|")
    for law, (draw, likelihood) in LAWS.items():
        errors = []
        for seed in seeds:
            rng = np.random.default_rng(seed)
            steps = np.zeros(N_ROUNDS)
            where = rng.choice(np.arange(1, N_ROUNDS), 8, replace=False)
            steps[where] = rng.uniform(3, 5, 8) * rng.choice([-1, 1], 8)
            level = np.cumsum(steps)
            y = level + draw(rng)
            exact = exact_filter(y, likelihood, level.min() - 5, level.max() + 5)
            x = OnlineTVDenoiser().partial_fit_predict(np.arange(N_ROUNDS), y)
            errors.append([np.sum((z - level) ** 2) for z in (exact, x)])
        print(f"| {law} | {' | '.join(f'{e:.0f}' for e in np.mean(errors, axis=0))} |")


if __name__ == "__main__":
    main()
