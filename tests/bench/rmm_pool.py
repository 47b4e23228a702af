"""RMM's pool resource for the table of `./dev bench shim`: fetches the wheel, compiles, runs.

The last release whose pool is a header (24.12) is used: later ones bring a library with the static CUDA
runtime, which accepts NVIDIA's driver only. Nothing of RMM is kept in the tree; the wheel lies in .cache.
"""

import pathlib
import subprocess
import sys
import zipfile

WHEEL = "librmm-cu12==24.12.1"


def unpacked(cache):
    """Folder with RMM's headers and libraries, or a sentence on why there is none."""
    root = cache / "rmm"
    if (root / "librmm").is_dir():
        return root / "librmm", ""
    root.mkdir(parents=True, exist_ok=True)
    done = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", root, WHEEL],
                          capture_output=True, text=True, check=False)
    wheels = list(root.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        return None, f"the wheel {WHEEL} could not be had: {done.stderr.strip().splitlines()[-1:]}"
    with zipfile.ZipFile(wheels[0]) as wheel:
        wheel.extractall(root)
    return root / "librmm", ""


def compiled(build, rmm):
    program = build / "bin" / "rmm_pool"
    source = pathlib.Path(__file__).with_name("rmm_pool.cc")
    if program.exists() and program.stat().st_mtime > source.stat().st_mtime:
        return program, ""
    cuda = next(line.split("=", 1)[1] for line in (build / "CMakeCache.txt").read_text().splitlines()
                if line.startswith("TIDEMARK_CUDA_INCLUDE:"))
    include = rmm / "include"
    command = ["c++", "-O2", "-DNDEBUG", "-std=c++17", "-DSPDLOG_FMT_EXTERNAL",
               "-DLIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE",
               *[f"-isystem{path}" for path in (include, include / "rapids", include / "rapids/libcudacxx", cuda)],
               source, "-o", program, f"-L{build}/simgpu", "-lcudart", rmm / "lib64/libspdlog.so",
               rmm / "lib64/libfmt.so.11", f"-Wl,-rpath,{rmm}/lib64"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None, f"it did not compile: {done.stderr.strip().splitlines()[:1]}"
    return program, ""


def run(build, environment):
    """Prints one row of the table, or why there is none."""
    cache = pathlib.Path(__file__).resolve().parents[2] / ".cache"
    rmm, why = unpacked(cache)
    if rmm:
        program, why = compiled(build, rmm.resolve())
    if why:
        print(f"RMM pool resource: not measured, {why}", flush=True)
        return
    subprocess.run([program], env=environment, check=False)
