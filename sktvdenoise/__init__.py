"""Online total-variation denoising with optimal dynamic regret."""

from sktvdenoise._version import __version__

__all__ = ["__version__"]
