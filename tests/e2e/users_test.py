#!/usr/bin/env python3
"""Ordinary users: with a daemon of their own, under root's daemon, behind a foreign one, without one.

Needs root, to become other users. They run a copy of what was built, because a build folder need not
be readable for them; the private umask of each process is lifted so that they share a software GPU.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

import stack_case
from stack import free_port

ALICE, BOB = 54321, 54322
VERBS = {
    "version": 0, "status": 0, "jobs": 0, "top --once": 0, "map train": 0, "policy get": 0,
    "policy set train --priority 3": 0, "policy explain train": 0, "evict train 2MiB": 0,
    "prefetch train": 0, "pin train": 0, "pin train --off": 0, "events": 0, "snapshot": 0,
    "doctor --simgpu": 0,
}


def json_values(text):
    """The JSON values that stand one after the other in `text`."""
    decoder, at, values = json.JSONDecoder(), 0, []
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        value, at = decoder.raw_decode(text, at)
        values.append(value)
    return values


@unittest.skipUnless(os.geteuid() == 0, "needs root, to become other users")
class Users(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp(prefix="tidemark-users-"))
        cls.root.chmod(0o755)
        build = pathlib.Path(stack_case.BUILD).resolve()
        for name in ("bin/tidemark", "bin/tidemarkd", "bin/chargpt", "lib/libtidemark_preload.so",
                     "lib/libtidemark_alias.so", "simgpu/libcuda.so.1", "simgpu/libcudart.so.13"):
            (cls.root / name).parent.mkdir(exist_ok=True)
            shutil.copy(build / name, cls.root / name)
            (cls.root / name).chmod(0o755)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.root)

    def setUp(self):
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="t", dir=self.root))
        self.place.chmod(0o755)
        (self.place / "simgpu").mkdir()
        (self.place / "simgpu").chmod(0o777)
        self.homes = {}
        for uid in (0, ALICE, BOB):
            self.homes[uid] = self.place / str(uid)
            self.homes[uid].mkdir(mode=0o755)
            os.chown(self.homes[uid], uid, uid)
        self.started = []

    def tearDown(self):
        for process in self.started:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=20)

    def start(self, uid, *words, library=False):
        spec = f"memory=1GiB,directory={self.place}/simgpu"
        env = {"PATH": f"{self.root}/bin:/usr/bin:/bin", "HOME": str(self.homes[uid]),
               "XDG_RUNTIME_DIR": str(self.homes[uid]), "SIMGPU": spec}
        env.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
        if words[0] == "tidemarkd" or library:
            env["LD_LIBRARY_PATH"] = str(self.root / "simgpu")
        return subprocess.Popen(words, env=env, user=uid, group=uid, extra_groups=[], umask=0,
                                cwd=self.place, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def call(self, uid, *words, library=False):
        process = self.start(uid, *words, library=library)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def start_daemon(self, uid, *flags):
        process = self.start(uid, "tidemarkd", "--metrics_listen", f"127.0.0.1:{free_port()}", *flags)
        self.started.append(process)
        line = process.stderr.readline()
        self.assertIn("serves", line)
        return process

    def start_root_daemon(self, *flags):
        folder = self.homes[0]
        self.start_daemon(0, "--socket", f"{folder}/tidemarkd.sock", "--admin_listen",
                          f"unix:{folder}/admin.sock", "--state_dir", f"{folder}/state", *flags)
        return f"{folder}/tidemarkd.sock", f"unix:{folder}/admin.sock"

    def train(self, uid, *flags, steps=1):
        code, out, err = self.call(uid, "tidemark", "run", "--simgpu", *flags, "--", "chargpt",
                                   "--size", "tiny", "--steps", str(steps))
        self.assertEqual(code, 0, err)
        self.assertIn("checksum", out)
        return err

    def test_a_user_with_a_daemon_of_their_own_needs_no_flag(self):
        self.start_daemon(ALICE)
        pid_file = self.homes[ALICE] / "pid"
        job = self.start(ALICE, "tidemark", "run", "--simgpu", "--job", "train", "--pid-file",
                         str(pid_file), "--", "chargpt", "--size", "tiny", "--steps", "100000")
        self.started.append(job)
        self.assertIn("step", job.stdout.readline())
        pid = int(pid_file.read_text())
        self.assertEqual(os.stat(f"/proc/{pid}").st_uid, ALICE)
        for verb, expected in VERBS.items():
            for form in ("text", "json"):
                with self.subTest(verb=verb, form=form):
                    code, out, err = self.call(ALICE, "tidemark", *verb.split(), "--format", form)
                    self.assertEqual((code, err), (expected, ""), out)
                    if form == "json":
                        self.assertTrue(json_values(out), out)
        self.assertIn(f'"pid": {pid}', self.call(ALICE, "tidemark", "jobs", "--format=json")[1])
        os.kill(pid, signal.SIGKILL)
        _, err = job.communicate(timeout=20)
        self.assertIn(f"(pid {pid}) ended with 137; next: tidemark events", err)

    def test_roots_daemon_serves_the_users_it_allows_and_tells_the_others_why_not(self):
        socket, admin = self.start_root_daemon("--allow_uids", str(ALICE))
        self.assertNotIn("standalone", self.train(ALICE, "--socket", socket, "--job", "hers"))
        refused = self.train(BOB, "--socket", socket, "--job", "his")
        self.assertIn(f"uid {BOB} may not attach", refused)
        code, events, _ = self.call(0, "tidemark", "--admin", admin, "events")
        self.assertEqual(code, 0)
        self.assertIn("hers", events)
        self.assertRegex(events, "job_refused .* his ")

    def test_a_users_jobs_keep_to_the_users_quota_together_and_end_with_the_same_bits(self):
        socket, admin = self.start_root_daemon("--allow_uids", str(ALICE))
        self.assertEqual(self.call(0, "tidemark", "--admin", admin, "policy", "set", f"uid:{ALICE}",
                                   "--device-budget", "40MiB")[0], 0)
        run = ["tidemark", "run", "--simgpu", "--socket", socket, "--"]
        train = ["chargpt", "--size", "tiny", "--steps"]
        jobs = [self.start(ALICE, *run, *train, "100000") for _ in range(2)]
        self.started += jobs
        for job in jobs:
            self.assertIn("step", job.stdout.readline())
        for _ in range(5):
            answer = self.call(0, "tidemark", "--admin", admin, "status", "--format=json")[1]
            user, = json.loads(answer)["users"]
            self.assertEqual((user["uid"], user["jobs"]), (ALICE, 2))
            self.assertEqual(int(user["device_quota_bytes"]), 40 << 20)
            self.assertLessEqual(int(user["device_held_bytes"][0]), 40 << 20)
            self.assertGreater(int(user["device_held_bytes"][0]), 0)
        for job in jobs:
            job.send_signal(signal.SIGTERM)
            job.communicate(timeout=20)
        bounded = self.call(ALICE, *run, *train, "2")
        alone = self.call(BOB, *train, "2", library=True)
        self.assertEqual(bounded[0], 0, bounded[2])
        self.assertEqual(bounded[1].splitlines()[-1], alone[1].splitlines()[-1])

    def test_who_may_not_use_the_admin_socket_is_told_whom_to_ask(self):
        _, admin = self.start_root_daemon()
        for verb in ("status", "events", "snapshot", "policy get", "map 1"):
            code, out, err = self.call(BOB, "tidemark", "--admin", admin, *verb.split())
            self.assertEqual((code, out), (1, ""), verb)
            self.assertIn(f"user {BOB} may not use", err)
            self.assertEqual(err.count("\n"), 1, err)
        self.assertIn("admin_group", self.call(BOB, "tidemark", "--admin", admin, "doctor")[1])

    def test_a_job_does_not_believe_the_daemon_of_a_third_user(self):
        self.start_daemon(ALICE, "--allow_uids", str(BOB))
        err = self.train(BOB, "--socket", f"{self.homes[ALICE]}/tidemark/tidemarkd.sock")
        self.assertIn("neither root nor", err)
        code, events, _ = self.call(ALICE, "tidemark", "events")
        self.assertEqual(code, 0)
        self.assertNotIn("attached", events)

    def test_a_daemon_does_not_serve_from_a_folder_of_another_user(self):
        (self.homes[ALICE] / "tidemark").mkdir()
        os.chown(self.homes[ALICE] / "tidemark", BOB, BOB)
        (self.homes[ALICE] / "tidemark").chmod(0o777)
        code, _, err = self.call(ALICE, "tidemarkd", "--metrics_listen", "")
        self.assertEqual(code, 1)
        self.assertIn(f"belongs to user {BOB}", err)

    def test_without_a_daemon_every_verb_says_so_and_jobs_run(self):
        for verb in VERBS:
            if verb.split()[0] in ("version", "doctor"):
                continue
            code, out, err = self.call(BOB, "tidemark", *verb.split())
            self.assertEqual((code, out), (3, ""), verb)
            self.assertIn("does not answer on", err)
        self.assertIn("runs standalone", self.train(BOB, "--budget", "40%"))


if __name__ == "__main__":
    stack_case.main()
