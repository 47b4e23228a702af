#!/usr/bin/env python3
"""Lists every driver function that a cuda.h declares, under the names a driver exports.

cuda.h renames by macro (cuMemAlloc -> cuMemAlloc_v2, ..._ptsz), so the compiler's preprocessor is
asked three times: default stream legacy, default stream per thread, and with the internal switch
that keeps superseded versions visible. Output: one `name<TAB>return type<TAB>parameters` a line,
sorted by name.

Used by simgpu/ (stubs for what it does not implement) and interpose/ (the forwarding table).
"""

import argparse
import os
import re
import subprocess
import sys

VARIANTS = (
    [],
    ["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"],
    ["-D__CUDA_API_VERSION_INTERNAL"],
)
# const char*-returning entries do not exist in the driver API; everything returns CUresult.
DECLARATION = re.compile(r"\b(CUresult)\s+(cu[A-Z]\w*)\s*\(([^;{}]*)\)\s*;")


def preprocess(compiler, header, flags):
    command = [compiler, "-E", "-P", "-x", "c", "-I", os.path.dirname(header), *flags, header]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"cuda_api.py: {' '.join(command)} failed: {done.stderr.strip()}")
    return done.stdout


def declarations(compiler, header):
    found = {}
    headers = [header, os.path.join(os.path.dirname(header), "cudaProfiler.h")]
    for path in filter(os.path.exists, headers):
        for flags in VARIANTS:
            for result, name, parameters in DECLARATION.findall(preprocess(compiler, path, flags)):
                found.setdefault(name, (result, " ".join(parameters.split())))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("header", help="path of cuda.h; cudaProfiler.h beside it is read too")
    parser.add_argument("--compiler", default="cc", help="C compiler used as preprocessor")
    args = parser.parse_args()
    found = declarations(args.compiler, args.header)
    if len(found) < 300:
        sys.exit(f"cuda_api.py: only {len(found)} functions found in {args.header}; "
                 "expected at least 300, so the header is not a CUDA driver header")
    for name in sorted(found):
        result, parameters = found[name]
        print(f"{name}\t{result}\t{parameters}")


if __name__ == "__main__":
    main()
