"""Measurements, run by `bin/bench`. Figures are ratios against a reference measured in the same run."""
