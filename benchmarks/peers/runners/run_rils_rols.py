"""RILS-ROLS with the settings of its SRBench entry. It does not stop when done, but says when it found its formula."""

import re

import job


def ready(settings):
    from rils_rols.rils_rols import RILSROLSRegressor

    def fit(X, y):
        model = RILSROLSRegressor(
            max_fit_calls=1_000_000,
            max_time=max(1, int(settings["max_time"])),
            max_complexity=50,
            sample_size=1,
            random_state=settings["seed"],
        )
        model.fit(X, y)
        # Its columns count from 0.
        text = re.sub(r"\bx(\d+)\b", lambda match: f"x{int(match[1]) + 1}", str(model.model_simp))
        return text, float(model.best_time)

    return fit


job.main(ready)
