#!/usr/bin/env python3
"""What a user gives the planner scoreboard: trace folders and options; the first argument is the program.

Only what is answered before the tables, which take minutes.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)
HEAD = "# step trace v1\n"


class Files(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        (self.folder / "step").mkdir()

    def run_with(self, *arguments):
        picture = str(self.folder / "picture.svg")
        return subprocess.run([PROGRAM, "--traces", str(self.folder), "--picture", picture, *arguments],
                              capture_output=True, text=True, timeout=60, check=False)

    def test_names_each_trace_that_it_leaves_out(self):
        cases = {"broken": "garbage\n",
                 "timeless": HEAD + "tensor,1,9,0\nop,0,a,0,,1\n",
                 "hollow": HEAD + "op,0,a,5,,\n",
                 "endless": HEAD + "tensor,1,9,0\n" +
                            "".join(f"op,{i},a,1125899906842624,,1\n" for i in range(9))}
        for name, text in cases.items():
            (self.folder / "step" / f"{name}.csv").write_text(text)
        done = self.run_with("--net", "nowhere")
        self.assertEqual(done.returncode, 2)
        for name, expected in (("broken", "line 1"), ("timeless", "take no time"),
                               ("hollow", "no tensors"), ("endless", "takes longer than")):
            self.assertRegex(done.stderr, f"left out: step trace .*{name}.csv: .*{expected}")

    def test_says_before_the_work_what_cannot_be_written(self):
        for option in ("--csv", "--picture"):
            for path in (str(self.folder / "absent" / "file"), str(self.folder)):
                done = self.run_with(option, path)
                self.assertEqual(done.returncode, 1)
                self.assertIn(f"{path} cannot be written", done.stderr)
                self.assertEqual(done.stdout, "")

    def test_helps_wherever_help_is_asked_for(self):
        for arguments in (["--help"], ["-h"], ["--full", "--help"]):
            done = self.run_with(*arguments)
            self.assertEqual(done.returncode, 0)
            self.assertIn("usage:", done.stdout)

    def test_leaves_no_file_behind_when_a_name_is_wrong(self):
        done = self.run_with("--csv", str(self.folder / "cells.csv"), "--net", "nowhere")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no net's name contains 'nowhere'", done.stderr)
        self.assertEqual(os.listdir(self.folder), ["step"])

    def test_is_reached_through_bench_py_with_all_its_options(self):
        bench = pathlib.Path(__file__).parents[1] / "bench.py"
        build = pathlib.Path(PROGRAM).parents[1]

        def run(*arguments):
            return subprocess.run([sys.executable, str(bench), "--build", str(build), "planner", *arguments],
                                  capture_output=True, text=True, timeout=60, check=False,
                                  env={**os.environ, "OLDPWD": str(self.folder)})

        self.assertIn("usage: planner_bench", run("--help").stdout)
        # A file to write is named from where the caller is, like one to read.
        done = run("--traces", str(self.folder), "--csv", "absent/cells.csv")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{self.folder}/absent/cells.csv cannot be written", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
