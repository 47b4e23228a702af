#!/usr/bin/env python3
"""Writes what the runtime takes from the installed CUDA headers: a stub for every public function,
and the names of the errors.

A stub is weak, so that a function defined elsewhere in the library takes its place; one that is left
answers cudaErrorNotSupported. Names with _ptds and _ptsz come from the headers' own switch.
"""

import argparse
import os
import re
import subprocess
import sys

HEADERS = ("cuda_runtime_api.h", "cuda_profiler_api.h", "cuda_gl_interop.h", "cuda_egl_interop.h",
           "cuda_vdpau_interop.h")
# Declared for Windows only.
NOT_HERE = ("cudaWGLGetDevice",)
# Exported by NVIDIA's runtime, declared in no public header, called by nobody but itself.
UNDECLARED = ("__cudaGetProcAddress", "__cudaRegisterHostVar", "__cudaRegisterUnifiedTable",
              "cudaDeviceGetTexture1DLinearMaxWidth", "cudaEGLStreamConsumerConnectWithFlags")
DECLARATION = re.compile(r"\bCUDARTAPI\s*\**\s*(cuda[A-Z]\w*)\s*\(")
DEFAULT_STREAM = re.compile(r"#\s*define\s+(cuda\w+)\s+__CUDART_API_(PTDS|PTSZ)\(\w+\)")
SUFFIX = {"PTDS": "_ptds", "PTSZ": "_ptsz"}
ERROR = re.compile(r"\b(cuda(?:Success|Error\w+))\s*=\s*(\d+)\b")


def read(include, header):
    path = os.path.join(include, header)
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8", errors="replace") as text:
        return text.read()


def functions(include):
    found = set(UNDECLARED)
    for header in HEADERS:
        text = read(include, header)
        found.update(DECLARATION.findall(text))
        found.update(name + SUFFIX[kind] for name, kind in DEFAULT_STREAM.findall(text))
    return sorted(found.difference(NOT_HERE))


def errors(include, compiler):
    command = [compiler, "-E", "-P", "-x", "c", os.path.join(include, "driver_types.h")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"generate.py: {' '.join(command)} failed: {done.stderr.strip()}")
    return ERROR.findall(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("include", help="folder of the CUDA headers")
    parser.add_argument("output", help="folder to write stubs.c and error_names.inc into")
    parser.add_argument("--compiler", default="cc", help="C compiler used as preprocessor")
    args = parser.parse_args()
    names = functions(args.include)
    codes = errors(args.include, args.compiler)
    if len(names) < 300 or len(codes) < 80:
        sys.exit(f"generate.py: {len(names)} functions and {len(codes)} errors found in "
                 f"{args.include}; at least 300 and 80 are expected of CUDA 13 headers")
    with open(os.path.join(args.output, "stubs.c"), "w", encoding="utf-8") as out:
        out.write('int simgpu_runtime_stub(const char* name, char* said);\n')
        for name in names:
            out.write(f'__attribute__((weak, visibility("default"))) int {name}(void) {{ '
                      f'static char said; return simgpu_runtime_stub("{name}", &said); }}\n')
    with open(os.path.join(args.output, "error_names.inc"), "w", encoding="utf-8") as out:
        for name, _ in codes:
            out.write(f"SIMGPU_RUNTIME_ERROR({name})\n")


if __name__ == "__main__":
    main()
