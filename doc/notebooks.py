"""Tutorials as notebooks, made from the gallery and executed.

    python doc/notebooks.py FOLDER [script ...]

writes a notebook with its outputs for each script of the gallery that is named, by
default for three tutorials. A failing cell, a failing assertion in it, is an error.
"""

import json
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from sphinx_gallery.gen_gallery import DEFAULT_GALLERY_CONF
from sphinx_gallery.notebook import jupyter_notebook
from sphinx_gallery.py_source_parser import split_code_and_text_blocks

EXAMPLES = Path(__file__).parents[1] / "examples"
TUTORIALS = ("plot_nile", "plot_comparison", "plot_drift")


def main(folder, *names):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or TUTORIALS:
        script = EXAMPLES / f"{name}.py"
        _, blocks = split_code_and_text_blocks(str(script))
        cells = jupyter_notebook(blocks, dict(DEFAULT_GALLERY_CONF), str(EXAMPLES))
        notebook = nbformat.reads(json.dumps(cells), as_version=4)
        notebook.cells.insert(0, nbformat.v4.new_code_cell("%matplotlib inline"))
        NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
        path = folder / f"{name.removeprefix('plot_')}.ipynb"
        nbformat.write(notebook, path)
        print(path)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
