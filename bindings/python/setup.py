"""Builds the extension module; pyproject.toml has the rest."""
import subprocess

from setuptools import setup

setup(
    cffi_modules=["redlock_build.py:builder"],
    version=subprocess.check_output(["pkg-config", "--modversion", "redlock"], text=True).strip(),
)
