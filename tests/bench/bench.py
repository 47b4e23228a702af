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

sys.path.append(str(pathlib.Path(__file__).with_name("alloc_speed")))
import alloc_speed  # noqa: E402

BENCHES = {"shim": "shim_bench", "calls": "call_cost"}
# Scoreboards: replays in one process, with arguments of their own and no software GPU.
SCORES = {"allocator": "allocator_score", "planner": "planner_bench"}
WRITTEN = ("--csv", "--picture")  # options of theirs that name a file to write


def run_alloc_speed(build, arguments):
    if len(arguments) > 1 or arguments and not pathlib.Path(as_the_caller_meant(arguments[0])).is_dir():
        print(f"bench: alloc-speed takes one folder of traces, or none; '{' '.join(arguments)}' is not one", file=sys.stderr)
        return 2
    folder = pathlib.Path(as_the_caller_meant(arguments[0]) if arguments else
                          os.environ.get("TIDEMARK_TRACES", pathlib.Path(__file__).parents[2] / "../shared/traces"))
    return alloc_speed.run(pathlib.Path(build).resolve(), str(folder) if folder.is_dir() else "")


def run_score(build, name, arguments):
    program = pathlib.Path(build).resolve() / "bin" / SCORES[name]
    if not program.exists():
        print(f"bench: {program} is missing; configure with TIDEMARK_BENCH=ON", file=sys.stderr)
        return 1
    meant = [where_the_caller_is(argument) if before in WRITTEN else as_the_caller_meant(argument)
             for before, argument in zip([None, *arguments], arguments)]
    return subprocess.run([program, *meant], check=False).returncode


def where_the_caller_is(argument):
    return str(pathlib.Path(os.environ.get("OLDPWD", "."), argument))


def as_the_caller_meant(argument):
    """./dev changed into the tree's root; a file is named from where it was called."""
    named = pathlib.Path(os.environ.get("OLDPWD", "."), argument)
    return str(named) if not pathlib.Path(argument).exists() and named.exists() else argument


def main():
    given = sys.argv[1:]
    if len(given) > 2 and given[0] == "--build" and given[2] in SCORES:  # as ./dev bench calls it
        return run_score(given[1], given[2], given[3:])  # options, --help too, are the program's
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, help="build folder, as ./dev bench gives it")
    parser.add_argument("names", nargs="*", help=f"which ones: {', '.join(BENCHES)} (default: these); or one of {', '.join([*SCORES, 'alloc-speed'])} with its arguments")
    args, rest = parser.parse_known_args()
    if args.names and args.names[0] == "alloc-speed":
        return run_alloc_speed(args.build, args.names[1:] + rest)
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    unknown = [name for name in args.names if name not in BENCHES]
    if unknown:
        print(f"bench: no benchmark is called '{unknown[0]}'; there are {', '.join([*BENCHES, *SCORES, 'alloc-speed'])}",
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
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
