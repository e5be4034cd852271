"""Builds the extension module; pyproject.toml has the rest."""
import subprocess
import sys

from setuptools import setup


def version() -> str:
    """The version of the library that is installed."""
    try:
        return subprocess.check_output(["pkg-config", "--modversion", "redlock"], text=True).strip()
    except FileNotFoundError:
        sys.exit("redlock-client: pkg-config is not installed")
    except subprocess.CalledProcessError:
        sys.exit("redlock-client: pkg-config does not find libredlock: install it, "
                 "and if it is in a prefix of its own, set PKG_CONFIG_PATH")


setup(
    cffi_modules=["redlock_build.py:builder"],
    version=version(),
)
