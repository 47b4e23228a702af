"""Prints what calls cost bare, under the switched-off library, and managed, in one run.

The three settings take turns, and each figure is the best of its turns, so that a busy machine
disturbs them alike.
"""

import os
import subprocess
import sys

TURNS = 3


def settings(build):
    preload = str(build / "lib" / "libtidemark_preload.so")
    return {
        "bare": {},
        "switched off": {"LD_PRELOAD": preload, "TIDEMARK_DISABLE": "1"},
        "managed": {"LD_PRELOAD": preload, "TIDEMARK_SOCKET": "", "TIDEMARK_BUDGET": "1GiB"},
    }


def measure(program, environment, simgpu):
    variables = dict(os.environ, **environment)
    if simgpu:
        variables["LD_LIBRARY_PATH"] = str(simgpu)
        variables.setdefault("SIMGPU", "memory=2GiB")
    done = subprocess.run([program], env=variables, capture_output=True, text=True, check=False,
                          timeout=120)
    if done.returncode != 0:
        sys.exit(f"bench: {program} failed: {done.stderr.strip()}")
    return {name: float(value) for name, value in
            (line.split() for line in done.stdout.splitlines())}


def run(build):
    """Prints the table for the programs in `build`. Returns an exit status."""
    program = build / "bin" / "call_cost"
    best = {}
    for _ in range(TURNS):
        for setting, environment in settings(build).items():
            for name, value in measure(program, environment, build / "simgpu").items():
                key = name, setting
                best[key] = min(best.get(key, value), value)
    columns = list(settings(build))
    print(f"{'ns per call, software GPU':28}" + "".join(f"{c:>14}" for c in columns)
          + f"{'managed/bare':>14}")
    for name in dict.fromkeys(name for name, _ in best):
        values = [best[name, column] for column in columns]
        print(f"{name:28}" + "".join(f"{v:14.0f}" for v in values)
              + f"{values[-1] / values[0]:14.3f}")
    return 0
