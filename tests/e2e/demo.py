#!/usr/bin/env python3
"""The demo behind `./dev demo`: one training job, four budgets, one table. Exit 0 only if it holds."""

import argparse
import os
import shlex
import sys
import time

from stack import MIB, Failure, Stack

SHARES = (100, 60, 40, 25)
# Few enough steps for two cores and five minutes, enough for the loss to fall below the text's unigram
# entropy, which is all that counting characters could reach.
JOB_FLAGS = ["--size", "demo", "--steps", "12", "--lr", "0.01"]


def say(text):
    print(text, file=sys.stderr, flush=True)


def mib(count):
    return f"{count / MIB:.0f} MiB"


class Row:
    def __init__(self, label, fits, result, device_peak, host_peak, moved):
        self.label, self.fits, self.result = label, fits, result
        self.device_peak, self.host_peak, self.moved = device_peak, host_peak, moved

    def cells(self, unlimited):
        step = self.result.median_step_ms()
        return [self.label, self.fits, mib(self.device_peak), mib(self.host_peak), mib(self.moved),
                f"{step:.2f} ms ({step / unlimited.median_step_ms():.2f}x)", self.result.checksum]


def table(rows):
    head = ["budget", "fits without?", "peak device", "peak host", "moved", "step time (virtual)", "checksum"]
    lines = [head] + rows
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    out = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]
    out.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(out)


def fits_without(stack, job, budget):
    """Runs the job bare on a device of `budget` bytes."""
    result = stack.run_job(job + ["--steps", "1"], bare=True,
                           spec=f"memory={budget},directory={stack.directory}/bare")
    return "yes" if result.returncode == 0 else "no"


class Watch:
    """Follows one job through the daemon's metrics, and keeps what the run looked like half-way."""

    def __init__(self, stack):
        self.stack = stack
        self.device_peak = self.host_peak = self.moved = 0
        self.status = self.excerpt = ""

    def look(self):
        page = self.stack.metric
        self.device_peak = max(self.device_peak, page("tidemark_job_peak_reserved_bytes") or 0)
        self.host_peak = max(self.host_peak, page("tidemark_job_host_resident_bytes") or 0)
        self.moved = max(self.moved, page("tidemark_job_moved_bytes_total") or 0)

    def keep(self):
        self.status = self.stack.cli("status")
        wanted = ("reserved_bytes{", "host_resident_bytes{", "moved_bytes_total{", "evictions", "safepoints")
        lines = [line for line in self.stack.metrics().splitlines()
                 if line.startswith("tidemark_") and any(word in line for word in wanted)]
        self.excerpt = "\n".join(lines[:12])


def run_watched(stack, job, budget, name):
    watch = Watch(stack)
    process = stack.start_job(job, budget=budget, name=name)
    last = 0
    while process.poll() is None:
        watch.look()
        if watch.moved and time.monotonic() - last > 2:
            watch.keep()
            last = time.monotonic()
        time.sleep(0.1)
    return stack.finish_job(process), watch


def check(result, baseline, label):
    if result.returncode != 0:
        raise Failure(f"the job at {label} ended with {result.returncode}: {result.stderr[-600:]}")
    if result.checksum != baseline.checksum:
        raise Failure(f"the job at {label} computed {result.checksum}, expected {baseline.checksum}")


def watched_row(stack, job, share, budget, baseline):
    label = f"{share} % = {mib(budget)}" if share else "no limit"
    say(f"demo: training under Tidemark, {label} ...")
    fits = fits_without(stack, job, budget) if share else "yes"
    result, watch = run_watched(stack, job, budget if share else None, f"chargpt-{share or 'free'}")
    check(result, baseline, label)
    return Row(label, fits, result, watch.device_peak, watch.host_peak, watch.moved), watch


def demo(stack, flags):
    job = [stack.binary("chargpt"), *JOB_FLAGS, *flags]
    say("demo: training without Tidemark on a device that is large enough ...")
    baseline = stack.run_job(job, bare=True)
    check(baseline, baseline, "no limit")
    want = baseline.peak_requested_bytes
    stack.start_daemon()
    free, _ = watched_row(stack, job, 0, 0, baseline)
    rows = [Row("without Tidemark", "yes", baseline, want, 0, 0), free]
    last = None
    for share in SHARES:
        budget = want * share // 100 // (2 * MIB) * 2 * MIB
        row, watch = watched_row(stack, job, share, budget, baseline)
        rows.append(row)
        last = watch if watch.status else last
    return baseline, [row.cells(free.result) for row in rows], last


def next_commands(stack, kept):
    prefix = os.path.relpath(stack.binary("tidemark"))
    if kept:
        prefix += f" --admin unix:{stack.admin}"
    return [f"{prefix} {verb}" for verb in ("status", "top", "events", "policy get", "doctor")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True, help="build directory")
    parser.add_argument("--keep", action="store_true", help="leave the daemon serving")
    parser.add_argument("flags", nargs="*", help="flags for chargpt, after --")
    args = parser.parse_args()
    stack = Stack(args.build)
    try:
        baseline, rows, watch = demo(stack, args.flags)
        print(f"\nchargpt: loss {baseline.losses[0]:.3f} -> {baseline.losses[-1]:.3f} in "
              f"{len(baseline.losses)} steps; it wants {mib(baseline.peak_requested_bytes)}\n")
        print(table(rows))
        print("\nAll checksums are equal. Step times are the software GPU's virtual time, against no limit under\n"
              "Tidemark; the bare run is slower than that because each of its cudaMalloc calls costs 180 us.\n")
        if watch:
            print("From the live run: tidemark status\n\n" + watch.status)
            print("From the live run: /metrics (excerpt)\n\n" + watch.excerpt + "\n")
        print("Try next" + ("" if args.keep else " (./dev demo --keep leaves a daemon to ask)") + ":")
        for command in next_commands(stack, args.keep):
            print("  " + command)
    except Failure as failure:
        say(f"demo: {failure}")
        stack.close()
        return 1
    if args.keep:
        run = [stack.binary("tidemark"), "run", "--simgpu", "--socket", str(stack.socket), "--budget",
               "40%", "--", stack.binary("chargpt"), "--size", "tiny"]
        print(f"\ntidemarkd serves (pid {stack.daemon.pid}); end it with: kill {stack.daemon.pid}; "
              f"rm -r {stack.directory}\nA job of your own: SIMGPU={shlex.quote(stack.spec)} {shlex.join(run)}")
    else:
        stack.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
