#!/usr/bin/env python3
"""What chargpt promises, on the software GPU: the same bits in every order of execution, learning, and
one clear sentence for bad input and for a device that is too small.

usage: chargpt_test.py --build BUILD_DIR [--seeds N] [unittest arguments]
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BUILD = None  # set by main
SEEDS = 4
MIB = 1 << 20


class ChargptCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="chargpt-")
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return pathlib.Path(self.folder.name) / name

    def run_job(self, *flags, simgpu="memory=1GiB"):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("TIDEMARK", "SIMGPU"))}
        env["SIMGPU"] = f"{simgpu},directory={self.path('node')},report={self.path('report')}"
        env["LD_LIBRARY_PATH"] = str(BUILD / "simgpu")
        return subprocess.run([BUILD / "bin/chargpt", *flags], env=env, capture_output=True,
                              text=True, timeout=600, check=False)

    def value(self, done, key):
        self.assertEqual(done.returncode, 0, done.stderr)
        found = re.search(rf"^{key} (\S+)$", done.stdout, re.M)
        self.assertIsNotNone(found, done.stdout)
        return found.group(1)

    def losses(self, done):
        return [float(x) for x in re.findall(r"^step \d+ loss (\S+) device_ms \S+$", done.stdout, re.M)]

    def report(self, key):
        return re.search(rf"^{key}: (\S+)$", self.path("report").read_text(), re.M).group(1)

    def assert_one_sentence(self, done, status, *parts):
        self.assertEqual(done.returncode, status, done.stderr)
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertTrue(lines[0].startswith("chargpt: "), lines)
        for part in parts:
            self.assertIn(part, lines[0])


class Bits(ChargptCase):
    def test_two_runs_print_the_same_checksum_and_losses(self):
        first = self.run_job("--size", "tiny")
        second = self.run_job("--size", "tiny")
        self.assertEqual(self.value(first, "checksum"), self.value(second, "checksum"))
        self.assertEqual(self.losses(first), self.losses(second))

    def test_another_seed_gives_another_checksum(self):
        first = self.run_job("--size", "tiny", "--quiet")
        second = self.run_job("--size", "tiny", "--quiet", "--seed", "2")
        self.assertNotEqual(self.value(first, "checksum"), self.value(second, "checksum"))

    def test_every_legal_order_gives_the_same_bits_without_a_race(self):
        expected = self.value(self.run_job("--size", "tiny"), "checksum")
        for seed in range(1, SEEDS + 1):
            done = self.run_job("--size", "tiny",
                                simgpu=f"memory=1GiB,order=adversarial,race=1,seed={seed}")
            self.assertEqual(self.value(done, "checksum"), expected, f"seed {seed}")
            self.assertEqual(self.report("races"), "0", f"seed {seed}: {done.stderr}")


class Training(ChargptCase):
    def test_learns_well_below_the_unigram_entropy(self):
        done = self.run_job("--layers", "2", "--width", "32", "--heads", "2", "--context", "64",
                            "--batch", "32", "--steps", "80", "--lr", "0.01")
        entropy = float(self.value(done, "unigram_entropy"))
        last = self.losses(done)[-16:]
        self.assertEqual(len(self.losses(done)), 80)
        self.assertLess(sum(last) / len(last), entropy - 0.4)

    def test_tiny_wants_forty_mebibytes(self):
        done = self.run_job("--size", "tiny", "--quiet")
        self.assertGreater(int(self.value(done, "peak_requested_bytes")), 40 * MIB)
        self.assertEqual(self.losses(done), [])

    def test_device_time_is_told_for_each_step(self):
        done = self.run_job("--size", "tiny")
        times = [float(x) for x in re.findall(r"device_ms (\S+)", done.stdout)]
        self.assertEqual(len(times), 3)
        self.assertGreater(min(times), 0)


class BadInput(ChargptCase):
    def test_bad_flag_is_named_with_its_value_and_what_is_accepted(self):
        for flags, parts in [
                (["--layers", "0"], ["--layers", '"0"', "1 to 96"]),
                (["--width=12x"], ["--width", '"12x"', "4 to 8192"]),
                (["--width", "20", "--heads", "3"], ["20", "3", "multiple"]),
                (["--size", "huge"], ["--size", '"huge"', "tiny or demo"]),
                (["--seed", "-1"], ["--seed", '"-1"']),
                (["--seed", "18446744073709551616"], ["--seed"]),
                (["--lr", "nan"], ["--lr", '"nan"']),
                (["--steps"], ["--steps", "value"]),
                (["--stpes", "3"], ['"--stpes"', "unknown"]),
                (["more"], ['"more"']),
                (["--batch", "1024", "--heads", "256", "--width", "256"], ["1024", "256", "65535"]),
                (["--batch", "1024", "--context", "8192", "--heads", "4"], ["8192", "4194304"]),
        ]:
            with self.subTest(flags=flags):
                self.assert_one_sentence(self.run_job(*flags), 2, *parts)

    def test_unusable_text_is_named(self):
        short = self.path("short.txt")
        short.write_text("too short")
        empty = self.path("empty")
        empty.mkdir()
        self.assert_one_sentence(self.run_job("--text", "/nowhere/text"), 2, "/nowhere/text")
        self.assert_one_sentence(self.run_job("--text", str(short)), 2, str(short), "9 characters")
        self.assert_one_sentence(self.run_job("--text", str(empty)), 2, str(empty), "empty")

    def test_help_lists_every_flag(self):
        done = self.run_job("--help")
        self.assertEqual(done.returncode, 0)
        for flag in ("size", "layers", "width", "heads", "context", "batch", "steps", "seed", "lr",
                     "text", "quiet"):
            self.assertIn(f"--{flag}", done.stdout)


class OutOfMemory(ChargptCase):
    def test_a_device_that_is_too_small_is_one_sentence(self):
        done = self.run_job("--size", "tiny", simgpu="memory=32MiB")
        self.assert_one_sentence(done, 3, "cudaMalloc of ", " bytes failed: out of memory")


def main():
    global BUILD, SEEDS
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True, help="build directory")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="adversarial orders to try")
    args, rest = parser.parse_known_args()
    BUILD = pathlib.Path(args.build).resolve()
    SEEDS = args.seeds
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
