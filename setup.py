"""Builds the kernels in C, where there is a compiler; everything else about the package is in pyproject.toml.

The library uses nothing of Python's, so one wheel serves all versions of Python on a platform. On x86-64 it is built
for every CPU and again for those with wider registers; src/varitext/compiled loads the widest that the CPU has. Without
a compiler the wheel is pure, and varitext does the same work in torch.
"""

import platform
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext


class BuildLibrary(build_ext):
    def build_extension(self, extension):
        microsoft = self.compiler.compiler_type == "msvc"
        options = ["/O2", "/std:c11"] if microsoft else ["-O3", "-g0", "-fno-math-errno", *BUILDS[extension.name]]
        extension.extra_compile_args = options
        extension.libraries = [] if microsoft else ["m"]
        super().build_extension(extension)

    def get_export_symbols(self, extension):
        return []  # the source says which; there is no PyInit_kernels

    def get_ext_filename(self, name):
        return str(Path(*name.split("."))) + EXTENSION_SUFFIXES[-1]  # without Python's version


class BuildWheel(bdist_wheel):
    def run(self):
        self.run_command("build_ext")
        build, extensions = self.get_finalized_command("build_ext"), self.distribution.ext_modules
        built = [each for each in extensions if Path(build.get_ext_fullpath(each.name)).exists()]
        self.distribution.ext_modules, self.root_is_pure = built, not built
        super().run()

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


FOLDER = Path("src/varitext/compiled")
BUILDS = {"varitext.compiled.kernels": []}  # with options of gcc and clang; kernels.h chooses the width of vectors
if platform.machine() in ("x86_64", "AMD64") and platform.system() != "Windows":
    avx2 = ["-mavx2", "-mfma"]  # no more than `registers` in kernels.c asks the CPU for
    BUILDS |= {"varitext.compiled.kernels_avx2": avx2, "varitext.compiled.kernels_avx512": [*avx2, "-mavx512f"]}
SOURCES, HEADERS = (sorted(map(str, FOLDER.glob(pattern))) for pattern in ("*.c", "*.h"))
KERNELS = [Extension(name, SOURCES, depends=HEADERS, optional=True) for name in BUILDS]
setup(ext_modules=KERNELS, cmdclass={"build_ext": BuildLibrary, "bdist_wheel": BuildWheel})
