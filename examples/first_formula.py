"""Learn a formula from a hundred noise-free rows: the shortest complete use of gmeql."""

import numpy as np

from gmeql import GMEQLRegressor


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 2, (100, 2))
    y = 1.5 * X[:, 0] ** 2 - 0.7 * np.sin(X[:, 1])
    model = GMEQLRegressor(max_time=10, random_state=0, verbose=0).fit(X, y)
    print("truth   1.5*x1**2 - 0.7*sin(x2)")
    print("found  ", model.expression_)


if __name__ == "__main__":
    main()
