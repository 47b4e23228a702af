#!/usr/bin/env python3
"""The same bits under every budget, with the daemon, without it, and switched off."""

import unittest

from stack_case import StackCase, bare, budget_of, main, tiny


class Budgets(StackCase):
    def test_job_computes_the_same_bits_at_every_budget(self):
        self.stack.start_daemon()
        for share in (100, 60, 40, 25):
            with self.subTest(share=share):
                result = self.stack.run_job(tiny(self.stack), budget=budget_of(share))
                self.assert_same_bits(result)

    def test_job_does_not_fit_without_tidemark(self):
        result = self.stack.run_job(tiny(self.stack), bare=True, spec=f"memory={budget_of(40)}")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("out of memory", result.stderr.lower() + result.stdout.lower())

    def test_job_stays_within_its_budget(self):
        self.stack.start_daemon()
        budget = budget_of(40)
        job = self.stack.start_job(tiny(self.stack), budget=budget, name="bounded")
        peak = 0
        while job.poll() is None:
            peak = max(peak, self.stack.metric("tidemark_job_peak_reserved_bytes", job="bounded") or 0)
        result = self.stack.finish_job(job)
        self.assert_same_bits(result)
        self.assertGreater(peak, 0, "no scrape saw the job")
        self.assertLessEqual(peak, budget)

    def test_losses_are_those_of_the_bare_run(self):
        self.stack.start_daemon()
        result = self.stack.run_job(tiny(self.stack), budget=budget_of(40))
        self.assertEqual(result.losses, bare().losses)


class WithoutDaemon(StackCase):
    def preload(self, **env):
        library = self.stack.build / "lib" / "libtidemark_preload.so"
        return self.stack.run_job(tiny(self.stack), bare=True, LD_PRELOAD=library, **env)

    def test_standalone_job_keeps_to_its_budget_and_its_bits(self):
        for share in (60, 25):
            with self.subTest(share=share):
                result = self.preload(TIDEMARK_BUDGET=budget_of(share), TIDEMARK_SOCKET="")
                self.assert_same_bits(result)

    def test_copies_ahead_of_a_plan_change_no_bit_in_any_order(self):
        flags = ("--width", "96", "--context", "64", "--batch", "8", "--layers", "2", "--steps", "5")
        library = self.stack.build / "lib" / "libtidemark_preload.so"
        for seed in (1, 2):
            with self.subTest(seed=seed):
                spec = f"order=adversarial,race=1,seed={seed},directory={self.stack.directory}/p{seed}"
                result = self.stack.run_job(tiny(self.stack, *flags), bare=True, spec=spec, LD_PRELOAD=library,
                                            TIDEMARK_BUDGET="8MiB", TIDEMARK_SOCKET="", TIDEMARK_PLANNER="1")
                self.assert_same_bits(result, *flags)
                self.assertEqual(result.report.get("races"), "0", "the report does not speak of races")

    def test_daemon_that_is_not_there_does_not_matter(self):
        result = self.preload(TIDEMARK_BUDGET=budget_of(40),
                              TIDEMARK_SOCKET=self.stack.directory / "nobody.sock")
        self.assert_same_bits(result)

    def test_disabled_library_passes_everything_through(self):
        result = self.preload(TIDEMARK_DISABLE="1")
        self.assert_same_bits(result)
        self.assertEqual(result.stderr, "")

    def test_success_is_silent(self):
        result = self.preload(TIDEMARK_BUDGET=budget_of(60), TIDEMARK_SOCKET="")
        self.assertEqual(result.stderr, "")


if __name__ == "__main__":
    main()
