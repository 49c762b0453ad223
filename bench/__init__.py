"""Measurements: `guard` counts, `speed` compares with floors of the same run."""

from __future__ import annotations

import sys
from pathlib import Path

# The throwaway cluster and the fleet of the tests serve the measurements too.
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
