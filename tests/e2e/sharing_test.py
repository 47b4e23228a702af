#!/usr/bin/env python3
"""Several jobs on one simulated GPU that is too small for two."""

import unittest

from stack_case import MIB, StackCase, bare, budget_of, main, tiny


class ThreeJobs(StackCase):
    @property
    def spec(self):
        return f"memory={bare().peak_requested_bytes * 3 // 2 // (2 * MIB) * 2 * MIB}"

    def test_three_jobs_finish_within_limits_set_by_policy(self):
        self.stack.start_daemon()
        limit = budget_of(40)
        policy = self.stack.directory / "policy"
        self.stack.cli("policy", "set", "default", f"--device-budget={limit}")
        jobs = [self.stack.start_job(tiny(self.stack), name=f"job-{i}") for i in range(3)]
        peaks = {}
        while any(job.poll() is None for job in jobs):
            for i in range(3):
                value = self.stack.metric("tidemark_job_peak_reserved_bytes", job=f"job-{i}") or 0
                peaks[i] = max(peaks.get(i, 0), value)
        for i, job in enumerate(jobs):
            self.assert_same_bits(self.stack.finish_job(job))
            self.assertLessEqual(peaks[i], limit)
        self.assertFalse(policy.exists())

    def test_three_jobs_finish_without_any_limit(self):
        self.stack.start_daemon()
        jobs = [self.stack.start_job(tiny(self.stack), name=f"free-{i}") for i in range(3)]
        for job in jobs:
            self.assert_same_bits(self.stack.finish_job(job))


class SteadyState(StackCase):
    def test_steady_steps_make_no_daemon_round_trip(self):
        self.stack.start_daemon()
        flags = ("--steps", "12")
        bare(*flags)
        job = self.stack.start_job(tiny(self.stack, *flags), budget=budget_of(40, *flags), name="steady")
        trips = []
        for line in job.stdout:
            if line.startswith("step"):
                trips.append(self.stack.metric("tidemark_job_daemon_round_trips_total", job="steady"))
        result = self.stack.finish_job(job)
        self.assertEqual(result.returncode, 0, result.stderr)
        # Until the job has run for a while, what it found out about its iteration, and free chunks given
        # up after seconds, can still make it ask for the last few chunks of its budget.
        steady = [t for t in trips[8:] if t is not None]
        self.assertTrue(steady, "the job was never seen in its steady state")
        self.assertEqual(steady[0], steady[-1], trips)


if __name__ == "__main__":
    main()
