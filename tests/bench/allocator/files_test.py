#!/usr/bin/env python3
"""Files a user gives the allocator scoreboard; the first argument is the program.

Snapshots are written by Python's own pickle, as PyTorch does it.
"""

import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)
MIB = 1 << 20


def snapshot():
    frames = [{"name": "forward", "filename": "train.py", "line": 7}] * 3

    def entry(action, address, size):
        return {"action": action, "addr": address, "size": size, "stream": 0, "time_us": 1,
                "frames": frames}

    base = 0x7F0000000000
    history = [entry("segment_alloc", base, 20 * MIB), entry("alloc", base, 6 * MIB)]
    for _ in range(3):
        history += [entry("alloc", base + 6 * MIB, 5 * MIB - 40),
                    entry("free_requested", base + 6 * MIB, 5 * MIB - 40),
                    entry("free_completed", base + 6 * MIB, 5 * MIB - 40)]
    blocks = [{"address": base, "size": 6 * MIB, "requested_size": 6 * MIB,
               "state": "active_allocated", "frames": frames},
              {"address": base + 6 * MIB, "size": 14 * MIB, "requested_size": 0,
               "state": "inactive", "frames": []}]
    return {"segments": [{"device": 0, "address": base, "total_size": 20 * MIB, "stream": 0,
                          "segment_type": "large", "segment_pool_id": (0, 0), "blocks": blocks}],
            "device_traces": [history, []], "allocator_settings": {"max_split_size": -1, "x": 0.5}}


class Harmful:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (self.path,))


class Files(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def run_on(self, name, content):
        path = self.folder / name
        path.write_bytes(content)
        return self.run_with(str(path))

    def run_with(self, *arguments):
        return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60,
                              check=False)

    def test_scores_a_snapshot_of_every_protocol_pytorch_may_use(self):
        for protocol in (2, 3, 4, 5):
            with self.subTest(protocol=protocol):
                done = self.run_on("step.pickle", pickle.dumps(snapshot(), protocol))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("step (0.01 GiB)", done.stdout)
                # The model of PyTorch's allocator takes what PyTorch took: one segment of 20 MiB.
                self.assertRegex(done.stdout, r"met +the native model within 0.5 %")

    def test_runs_nothing_that_a_snapshot_brings_along(self):
        made = self.folder / "made"
        content = snapshot()
        content["device_traces"][0].append(Harmful(str(made)))
        done = self.run_on("bad.pickle", pickle.dumps(content, 4))
        self.assertEqual(done.returncode, 2)
        self.assertIn("STACK_GLOBAL is refused", done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertFalse(made.exists())

    def test_says_in_one_sentence_what_is_wrong_with_a_file(self):
        cut = pickle.dumps(snapshot(), 4)[:-40]
        for name, content, expected in (("cut.pickle", cut, "longer than the rest of the file"),
                                        ("x.csv", b"# allocation trace v1\na,1,2\n", "line 2"),
                                        ("y.csv", b"hello\n", "is neither"),
                                        ("z.gz", b"\x1f\x8b\x08\0\0\0\0\0", "cannot be read"),
                                        ("empty", b"", "is neither")):
            with self.subTest(name=name):
                done = self.run_on(name, content)
                self.assertEqual(done.returncode, 2)
                self.assertIn(expected, done.stderr)
                self.assertEqual(len(done.stderr.strip().splitlines()), 1)

    def test_names_a_broken_file_and_scores_the_others(self):
        good = b"# allocation trace v1\na,1,4194304,0,0\na,2,8388608,0,1\nf,2,8388608,0,2\n"
        (self.folder / "alloc").mkdir()
        (self.folder / "alloc" / "good.csv").write_bytes(good)
        (self.folder / "alloc" / "bad.csv").write_bytes(good[:-3])
        done = self.run_with("--traces", str(self.folder), "--only", "good")
        self.assertEqual(done.returncode, 2)
        self.assertIn("bad.csv: line 4", done.stderr)
        self.assertIn("good (0.01 GiB)", done.stdout)
        done = self.run_with(str(self.folder / "absent.pickle"), str(self.folder / "alloc" / "good.csv"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("absent.pickle: cannot be opened", done.stderr)
        self.assertIn("good (0.01 GiB)", done.stdout)

    def test_says_that_a_name_matches_nothing(self):
        for option, what in (("--only", "trace"), ("--allocator", "allocator")):
            done = self.run_with("--traces", str(self.folder), option, "nowhere")
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"no {what}'s name contains 'nowhere'", done.stderr)

    def test_refuses_more_than_a_device_could_hold(self):
        rows = "".join(f"a,{i},2199023255552,0,0\n" for i in range(3))
        done = self.run_on("huge.csv", ("# allocation trace v1\n" + rows).encode())
        self.assertEqual(done.returncode, 2)
        self.assertIn("bytes at once", done.stderr)

    def test_scores_an_rmm_log(self):
        rows = ["Thread,Time,Action,Pointer,Size,Stream"]
        for i in range(4):
            rows.append(f"1,10:00:00.00000{i},allocate,0x{1000 * (i + 1):x},{MIB * (i + 1)},0x0")
        rows.append("1,10:00:00.000009,free,0x7d0,2097152,0x0")
        done = self.run_on("log.csv", ("\n".join(rows) + "\n").encode())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("log (0.01 GiB)", done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
