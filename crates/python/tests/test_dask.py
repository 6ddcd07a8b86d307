"""The example for Dask. Runs where Dask is installed: ``cargo xtask python --connectors``."""

import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("dask.dataframe")

EXAMPLE = pathlib.Path(__file__).parent.parent / "examples" / "dask_build.py"


@pytest.mark.skipif(not EXAMPLE.exists(), reason="only in the repository")
def test_the_example_runs():
    done = subprocess.run([sys.executable, EXAMPLE, "--rows", "10000"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.endswith("verdict: all right\n"), done.stdout + done.stderr
