"""Configuration of lit: ``lit filecheck`` runs the same tests as pytest, each in processes."""

import os
import sys

import lit.formats

config.name = "plait"  # noqa: F821
config.test_format = lit.formats.ShTest(True)  # noqa: F821
config.suffixes = [".mlir"]  # noqa: F821
config.test_source_root = os.path.dirname(__file__)  # noqa: F821
config.environment["PATH"] = os.pathsep.join(  # noqa: F821
    [os.path.dirname(sys.executable), os.environ.get("PATH", "")]
)
