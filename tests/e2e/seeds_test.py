#!/usr/bin/env python3
"""Many schedules: adversarial order, races watched, and the daemon killed at a random step.

TIDEMARK_SEEDS=N:M runs N schedules and M kills instead of 200:50.
"""

import concurrent.futures
import os
import random
import signal
import unittest

from stack_case import StackCase, bare, budget_of, main, tiny
from stack import Stack
import stack_case

SCHEDULES, KILLS = (int(n) for n in os.environ.get("TIDEMARK_SEEDS", "200:50").split(":"))
FLAGS = ("--steps", "2")


class Seeds(StackCase):
    def run_all(self, work, count):
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(work, range(1, count + 1)))

    def test_every_schedule_gives_the_same_bits_without_race_or_illegal_address(self):
        library = self.stack.build / "lib" / "libtidemark_preload.so"
        budget = budget_of(40, *FLAGS)

        def one(seed):
            spec = f"order=adversarial,race=1,seed={seed},directory={self.stack.directory}/s{seed}"
            return self.stack.run_job(tiny(self.stack, *FLAGS), bare=True, spec=spec, LD_PRELOAD=library,
                                      TIDEMARK_BUDGET=budget, TIDEMARK_SOCKET="")

        for seed, result in enumerate(self.run_all(one, SCHEDULES), 1):
            with self.subTest(seed=seed):
                self.assert_same_bits(result, *FLAGS)
                self.assertEqual(result.report.get("races"), "0", "the report does not speak of races")

    def test_daemon_killed_at_a_random_step_changes_no_bit(self):
        budget = budget_of(40, *FLAGS)

        def one(seed):
            with Stack(stack_case.BUILD, f"memory=2GiB,order=adversarial,seed={seed}") as stack:
                stack.start_daemon()
                rng = random.Random(seed)
                job = stack.start_job(tiny(stack, *FLAGS), budget=budget, name="seeded")
                for _ in range(rng.randrange(0, 3)):
                    stack.read_line(job)
                stack.kill_daemon(signal.SIGKILL)
                if rng.random() < 0.7:
                    stack.start_daemon()
                return stack.finish_job(job)

        for seed, result in enumerate(self.run_all(one, KILLS), 1):
            with self.subTest(seed=seed):
                self.assert_same_bits(result, *FLAGS)


if __name__ == "__main__":
    main()
