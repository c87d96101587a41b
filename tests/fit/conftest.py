"""One fit of a mass on a spring, for all who look at it."""

import pytest
from oscillator import fit_in


@pytest.fixture(scope="session")
def fit_directory(tmp_path_factory):
    return tmp_path_factory.mktemp("fit") / "fit"


@pytest.fixture(scope="session")
def fitted(fit_directory):
    return fit_in(fit_directory)
