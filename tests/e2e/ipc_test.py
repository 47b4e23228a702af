#!/usr/bin/env python3
"""CUDA IPC handles of managed memory work between two jobs under one daemon."""

import pathlib
import subprocess
import sys

from stack_case import MIB, StackCase, main

PROCESS = str(pathlib.Path(__file__).with_name("ipc_process.py"))


class Ipc(StackCase):
    def start(self, *arguments):
        command = [self.stack.binary("tidemark"), "run", "--simgpu", "--socket", str(self.stack.socket), "--",
                   sys.executable, PROCESS, *arguments]
        return subprocess.Popen(command, env=self.stack.environment(), stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def share(self, size):
        giver = self.start("give", str(size))
        handle = giver.stdout.readline().strip()
        self.assertEqual(len(handle), 128, giver.communicate(timeout=30)[1] if not handle else handle)
        taker = self.start("take", handle, str(size))
        output, said = taker.communicate(timeout=60)
        self.assertEqual((taker.returncode, output), (0, "written\n"), said)
        output, said = giver.communicate("\n", timeout=60)
        self.assertEqual((giver.returncode, output), (0, "seen\n"), said)

    def test_two_jobs_see_the_same_bytes(self):
        self.stack.start_daemon()
        for size in (4096, 3 * MIB + 512, 20 * MIB):
            with self.subTest(size=size):
                self.share(size)
        self.wait_until(lambda: not self.stack.metric("tidemark_device_memory_bytes", state="leased"), 20)


if __name__ == "__main__":
    main()
