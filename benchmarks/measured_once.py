"""Figures of other synthesizers that no script makes: measured once, on all rows of Adult discretised."""

from __future__ import annotations

MEASURED_ONCE: dict[str, list[object]] = {
    "AIM (private-pgm)": ["0.0385", "0.0887", "", 518.0, "", "", "5700"],
    "SWIFT (dpsynth)": ["0.0390", "0.0855", "", 728.0, "", "", ""],
    "prototype of this method, in numpy": ["0.0302", "0.0731", "", 1.7, "", "", ""],
    "MST (private-pgm)": ["0.0516", "0.1131", "", 86.0, "", "", ""],
    "PrivSyn (its authors' code)": ["0.0887", "0.1839", "", 128.0, "", "", ""],
    "PrivBayes (dpmm)": ["0.0941", "0.1712", "", 104.0, "", "", ""],
    "columns shuffled, no privacy": ["0.0761", "0.1735", "", "", "", "", ""],
    "bootstrap of the rows, no privacy": ["0.0146", "0.0348", "", "", "", "", ""],
}
"""With 2 cores at epsilon 1, delta 1e-9, by the scorer of ``comparison.py``: two-way, three-way, range,
seconds, of it fit, sample, MiB."""

NOT_RUN: dict[str, str] = {
    "AIM (private-pgm)": "the package index has its library (mbi), not its mechanisms",
    "SWIFT (dpsynth)": "the package index has no dpsynth",
    "MST (private-pgm)": "the package index has its library (mbi), not its mechanisms",
    "PrivSyn (its authors' code)": "it is no package",
    "PrivSyn (privsyn-core 0.1.1)": (
        "faulty: of a table with a column of four equally frequent codes it gives one of them to 85 % of the "
        "rows, at epsilon 100 too"
    ),
}
"""Why some of the field are not run."""
