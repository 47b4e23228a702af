#!/usr/bin/env python3
"""Runs the benchmarks over the software GPU and prints their tables: ./dev bench [NAME]."""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import call_cost
import rmm_pool

BENCHES = {"shim": "shim_bench", "calls": "call_cost"}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, help="build folder, as ./dev bench gives it")
    parser.add_argument("names", nargs="*", help=f"which ones: {', '.join(BENCHES)} (default: all)")
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in BENCHES]
    if unknown:
        print(f"bench: no benchmark is called '{unknown[0]}'; there are {', '.join(BENCHES)}",
              file=sys.stderr)
        return 2
    build = pathlib.Path(args.build).resolve()
    for name in args.names or BENCHES:
        program = build / "bin" / BENCHES[name]
        if not program.exists():
            print(f"bench: {program} is missing; configure with TIDEMARK_BENCH=ON", file=sys.stderr)
            return 1
        if name == "calls":  # takes turns between bare and preloaded
            print(f"== {name}", flush=True)
            call_cost.run(build)
            continue
        with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as directory:
            env = {k: v for k, v in os.environ.items() if not k.startswith("TIDEMARK")}
            env["SIMGPU"] = f"memory=1GiB,directory={directory}/simgpu"
            env["LD_LIBRARY_PATH"] = str(build / "simgpu")
            env["TIDEMARK_SOCKET"] = ""
            print(f"== {name}", flush=True)
            code = subprocess.run([program], env=env, check=False).returncode
            if code != 0:
                return code
            rmm_pool.run(build, env)
    return 0


if __name__ == "__main__":
    sys.exit(main())
