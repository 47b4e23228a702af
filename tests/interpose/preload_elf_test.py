#!/usr/bin/env python3
"""Reads the preloaded library's ELF: what it needs, exports, runs at load and binds lazily.

A library that lives in every process of a job must bring nothing with it.
Usage: preload_elf_test.py LIBRARY cuda_api.txt hooks.def CUDA_INCLUDE GOLDEN
"""

import pathlib
import re
import subprocess
import sys
import unittest

LIBRARY, API, HOOKS, INCLUDE, GOLDEN = sys.argv[1:6]
INTEROP_HEADERS = ("cudaGL.h", "cudaEGL.h", "cudaVDPAU.h")


def read(*arguments):
    done = subprocess.run([*arguments, LIBRARY], capture_output=True, text=True, check=True)
    return done.stdout


def exports():
    lines = read("nm", "-D", "--defined-only").splitlines()
    return {line.split()[-1] for line in lines}


class PreloadElf(unittest.TestCase):
    def test_needs_nothing_but_libc(self):
        needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", read("readelf", "-dW")))
        self.assertLessEqual(needed, {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"})

    def test_is_found_as_the_driver(self):
        self.assertRegex(read("readelf", "-dW"), r"\(SONAME\).*\[libcuda\.so\.1\]")

    def test_binds_at_load_and_stays(self):
        dynamic = read("readelf", "-dW")
        self.assertIn("NOW", re.search(r"\(FLAGS_1\).*", dynamic).group())
        self.assertIn("NODELETE", re.search(r"\(FLAGS_1\).*", dynamic).group())
        self.assertNotIn("TEXTREL", dynamic)

    def test_runs_nothing_at_load(self):
        # One entry: the compiler's own frame_dummy, which does nothing here.
        size = re.search(r"\(INIT_ARRAYSZ\)\s+(\d+)", read("readelf", "-dW"))
        self.assertLessEqual(int(size.group(1)) if size else 0, 8)
        constructors = re.findall(r"_GLOBAL__sub_I_\S*|_GLOBAL__I_\S*", read("nm"))
        self.assertEqual(constructors, [])

    def test_wants_no_cpp_runtime(self):
        undefined = read("nm", "-D", "--undefined-only")
        self.assertNotRegex(undefined, r"\b_Z|GLIBCXX|CXXABI|__gxx|_Unwind")

    def test_exports_every_driver_name_and_the_hooks(self):
        api = {line.split("\t")[0] for line in pathlib.Path(API).read_text().splitlines()}
        hooks = set(re.findall(r"^TIDEMARK_(?:RUNTIME_)?HOOK\((\w+)",
                               pathlib.Path(HOOKS).read_text(), re.MULTILINE))
        interop = {name for name in exports() - api - hooks if self.is_interop(name)}
        self.assertEqual(exports(), api | hooks | interop | {"tidemark_hooks_v1"})
        self.assertGreater(len(interop), 20)

    def is_interop(self, name):
        base = re.sub(r"_pt(sz|ds)$", "", name)
        paths = (pathlib.Path(INCLUDE) / header for header in INTEROP_HEADERS)
        return any(re.search(rf"\b{base}\b", path.read_text(errors="replace"))
                   for path in paths if path.exists())

    def test_exports_no_versions(self):
        self.assertNotIn("Version definition section", read("readelf", "-VW"))

    def test_exports_beyond_the_driver_api_are_the_golden_ones(self):
        api = {line.split("\t")[0] for line in pathlib.Path(API).read_text().splitlines()}
        beyond = sorted(name for name in exports() - api if not self.is_interop(name))
        self.assertEqual("\n".join(beyond) + "\n", pathlib.Path(GOLDEN).read_text())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
