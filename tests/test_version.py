"""What results say about the versions they depend on."""

import platform

import numpy as np

from gmeql._version import __version__, versions


def test_versions_name_the_library_python_and_the_packages_that_are_installed() -> None:
    found = versions("no-such-package", "pytest")
    assert found["gmeql"] == __version__ and found["python"] == platform.python_version()
    assert found["numpy"] == np.__version__
    assert "pytest" in found and "no-such-package" not in found
