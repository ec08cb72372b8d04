"""Builds the kernels in C, where there is a compiler; everything else about the package is in pyproject.toml.

The library uses nothing of Python's, so one wheel serves all versions of Python on a platform. Without a compiler the
wheel is pure, and varitext does the same work in torch (src/varitext/compiled).
"""

from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext


class BuildLibrary(build_ext):
    def build_extension(self, extension):
        microsoft = self.compiler.compiler_type == "msvc"
        extension.extra_compile_args = ["/O2", "/std:c11"] if microsoft else ["-O3", "-fno-math-errno"]
        extension.libraries = [] if microsoft else ["m"]
        super().build_extension(extension)

    def get_export_symbols(self, extension):
        return []  # the source says which; there is no PyInit_kernels

    def get_ext_filename(self, name):
        return str(Path(*name.split("."))) + EXTENSION_SUFFIXES[-1]  # without Python's version


class BuildWheel(bdist_wheel):
    def run(self):
        self.run_command("build_ext")
        if not all(map(Path.exists, map(Path, self.get_finalized_command("build_ext").get_outputs()))):
            self.distribution.ext_modules = []
            self.root_is_pure = True
        super().run()

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


FOLDER = Path("src/varitext/compiled")
KERNELS = Extension(
    "varitext.compiled.kernels",
    sorted(map(str, FOLDER.glob("*.c"))),
    depends=sorted(map(str, FOLDER.glob("*.h"))),
    optional=True,
)
setup(ext_modules=[KERNELS], cmdclass={"build_ext": BuildLibrary, "bdist_wheel": BuildWheel})
