"""Online total-variation denoising with optimal dynamic regret."""

from sktvdenoise._version import __version__
from sktvdenoise.online import OnlineTVDenoiser

__all__ = ["OnlineTVDenoiser", "__version__"]
