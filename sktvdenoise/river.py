"""The online denoiser as a model of river, the library for streams of dicts.

This module imports river (``pip install river``); nothing else in the package does.
"""

from river.base import Regressor

from sktvdenoise.online import OnlineTVDenoiser

__all__ = ["RiverDenoiser"]


class RiverDenoiser(Regressor):
    """`OnlineTVDenoiser` with the interface of river.

    The features `x` are ignored: labels count in the order in which they are learned.
    Memory is O(log n) with the default `pruning`.

    Parameters
    ----------
    learning_rate : {"auto", "theory", "mixable"} or float, default="auto"
    bound : float, default=None
    pruning : {"aflh"} or None, default="aflh"
    missing : {"error", "skip"}, default="error"
        See :class:`~sktvdenoise.online.OnlineTVDenoiser`. As always in river,
        parameters are for good: `clone` makes a model with others.

    Attributes
    ----------
    denoiser : OnlineTVDenoiser
        What learns; it knows the standard deviation of the next label, breakpoints,
        run length and experts.

    Examples
    --------
    >>> from river import metrics
    >>> from river.evaluate import progressive_val_score
    >>> from sktvdenoise.datasets import load_nile
    >>> from sktvdenoise.river import RiverDenoiser
    >>> year, flow = load_nile(return_X_y=True)
    >>> stream = [({}, float(y)) for y in flow]
    >>> progressive_val_score(stream, RiverDenoiser(), metrics.MAE()).get() < 130
    True
    """

    def __init__(
        self, learning_rate="auto", bound=None, pruning="aflh", missing="error"
    ):
        self.learning_rate = learning_rate
        self.bound = bound
        self.pruning = pruning
        self.missing = missing
        self.denoiser = OnlineTVDenoiser(
            learning_rate=learning_rate,
            bound=bound,
            pruning=pruning,
            missing=missing,
            keep_history=False,
        )

    def learn_one(self, x, y):
        """Learn a label.

        Parameters
        ----------
        x : dict
            Ignored.
        y : float

        Raises
        ------
        ValueError
            As :meth:`sktvdenoise.online.OnlineTVDenoiser.learn_one`.
        """
        self.denoiser.learn_one(y)

    def predict_one(self, x):
        """Predict the next label; 0 before the first.

        Parameters
        ----------
        x : dict
            Ignored.

        Returns
        -------
        prediction : float
        """
        return self.denoiser.predict_one()
