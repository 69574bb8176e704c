"""A reference data set: Misra1a of NIST's Statistical Reference Datasets (monomolecular adsorption, 14 observations).

NIST certifies the fit of b1*(1 - exp(-b2*x)): b1 = 238.94212918, b2 = 5.5015643181e-4, residual standard deviation
0.10187876330. Here the form itself is searched as well.
https://www.itl.nist.gov/div898/strd/nls/data/misra1a.shtml
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from gmeql import GMEQLRegressor

table = pd.DataFrame(
    {
        "pressure": [77.6, 114.9, 141.1, 190.8, 239.9, 289.0, 332.8, 378.4, 434.8, 477.3, 536.8, 593.1, 689.1, 760.0],
        "volume": [10.07, 14.73, 17.94, 23.93, 29.61, 35.18, 40.02, 44.82, 50.76, 55.05, 61.01, 66.40, 75.47, 81.78],
    }
)
X, y = table[["pressure"]], table["volume"]

model = GMEQLRegressor(functions=["+", "-", "*", "/", "exp", "sum"], max_time=8, random_state=0).fit(X, y)
certified = 238.94212918 * (1 - np.exp(-5.5015643181e-4 * X["pressure"]))
certified_loss = np.sqrt(np.mean((certified - y) ** 2))

print(model.front_)
print("chosen:   ", model.expression_)
print(f"its loss {model.front_[model.selected_index_].loss:.4f}, that of NIST's certified form {certified_loss:.4f}")
for interval in model.intervals(X, y):
    print(f"constant {interval.value:.6g} ± {interval.standard_error:.2g}")
