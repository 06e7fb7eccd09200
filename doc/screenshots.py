"""The start page and the gallery, as a browser without a window draws them.

    python doc/screenshots.py doc/_build FOLDER

Fails where a page is blank or lacks its pictures: the blue of the curves must be seen.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.image import imread

PAGES = {"start": "index.html", "gallery": "auto_examples/index.html"}
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BLUE = "#0072B2"


def shoot(browser, page, picture):
    with tempfile.TemporaryDirectory() as profile:
        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
            "--window-size=1300,1300",
            "--virtual-time-budget=3000",
            f"--user-data-dir={profile}",
            f"--screenshot={picture}",
        ]
        subprocess.run(
            [browser, *options, page.resolve().as_uri()],
            check=True,
            timeout=120,
            stderr=subprocess.DEVNULL,
        )


def main(built, folder):
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit(f"No browser: looked for {', '.join(BROWSERS)}.")
    folder = Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        picture = folder / f"{name}.png"
        shoot(browser, Path(built) / page, picture)
        pixels = imread(picture)[..., :3]
        blue = np.mean(np.abs(pixels - to_rgb(BLUE)).max(axis=-1) < 0.02)
        ink = np.mean(pixels.max(axis=-1) < 0.5)
        print(f"{picture}: {blue:.2%} blue, {ink:.2%} dark")
        if blue < 2e-4 or ink < 5e-3:
            sys.exit(f"{picture}: text or pictures are missing")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
