#!/usr/bin/env python3
"""Jobs and daemons that die: nothing is lost, nothing stays behind."""

import contextlib
import os
import random
import signal
import unittest

from stack_case import StackCase, bare, budget_of, main, tiny


class JobDies(StackCase):
    def test_everything_returns_to_the_pool_when_a_job_is_killed_at_any_step(self):
        self.stack.start_daemon()
        rng = random.Random(7)
        for _ in range(6):
            job = self.stack.start_job(tiny(self.stack), budget=budget_of(40), name="victim")
            for _ in range(rng.randrange(1, 4)):
                self.stack.read_line(job)
            self.kill_both(job)
            self.wait_until(lambda: not self.leased(), 20)

    def kill_both(self, job):
        """The job itself, and the `tidemark run` that waits for it."""
        self.assertEqual(self.stack.metric("tidemark_up"), 1.0)  # the daemon answers before and after
        self.wait_until(job.pid_file.exists, 20)
        with contextlib.suppress(ProcessLookupError):  # it may have come to its end
            os.kill(int(job.pid_file.read_text()), signal.SIGKILL)
        job.kill()
        job.communicate()

    def leased(self):
        """the pool to be whole again"""
        return self.stack.metric("tidemark_device_memory_bytes", state="leased") or 0


class DaemonDies(StackCase):
    def run_with_restart(self, step, budget):
        self.stack.start_daemon()
        job = self.stack.start_job(tiny(self.stack), budget=budget, name="survivor")
        seen = []
        while len(seen) < step and job.poll() is None:
            line = self.stack.read_line(job)
            if line.startswith("step"):
                seen.append(line)
        self.stack.kill_daemon(signal.SIGKILL)
        self.stack.start_daemon()
        result = self.stack.finish_job(job)
        result.stdout = "".join(seen) + result.stdout
        return result

    def test_job_finishes_with_the_same_bits_when_the_daemon_is_killed_and_restarted(self):
        for step in (1, 2):
            with self.subTest(step=step):
                self.assert_same_bits(self.run_with_restart(step, budget_of(40)))

    def test_job_finishes_when_the_daemon_is_killed_for_good(self):
        self.stack.start_daemon()
        job = self.stack.start_job(tiny(self.stack), budget=budget_of(40))
        self.stack.read_line(job)
        self.stack.kill_daemon(signal.SIGKILL)
        self.assert_same_bits(self.stack.finish_job(job))

    def test_new_daemons_ledger_agrees_with_the_job(self):
        self.stack.start_daemon()
        flags = ("--steps", "12")
        bare(*flags)
        job = self.stack.start_job(tiny(self.stack, *flags), budget=budget_of(40, *flags), name="agree")
        self.stack.read_line(job)
        self.stack.kill_daemon(signal.SIGKILL)
        self.stack.start_daemon()

        def agrees():
            """the new daemon to account for what the job holds"""
            leased = self.stack.metric("tidemark_device_memory_bytes", state="leased")
            reserved = self.stack.metric("tidemark_job_reserved_bytes", job="agree")
            return bool(leased) and leased == reserved

        self.wait_until(agrees, 20)
        self.assert_same_bits(self.stack.finish_job(job), *flags)


class BadStart(StackCase):
    def refused(self, *flags):
        import subprocess
        done = subprocess.run([self.stack.binary("tidemarkd"), "--metrics_listen", "", *flags],
                              env=self.stack.environment(), capture_output=True, text=True, timeout=20)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        return done.stderr

    def test_second_daemon_says_that_one_is_running(self):
        self.stack.start_daemon()
        said = self.refused("--socket", str(self.stack.socket), "--state_dir",
                            str(self.stack.directory / "state"))
        self.assertIn("running", said)

    def test_socket_path_that_is_too_long_is_named(self):
        path = str(self.stack.directory / ("x" * 120))
        self.assertIn("x" * 120, self.refused("--socket", path, "--state_dir",
                                              str(self.stack.directory / "other")))

    def test_unknown_flag_is_named(self):
        self.assertIn("--colour", self.refused("--colour", "blue"))


if __name__ == "__main__":
    main()
