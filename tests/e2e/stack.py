"""A whole Tidemark stack in a private directory: the daemon on the software GPU, and jobs under it.

Used by the demo and by the end-to-end tests. Nothing outlives `Stack.close()`: processes are ended,
the directory and the software GPU's shared state are removed. Not thread-safe.
"""

import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request

MIB = 1 << 20


class Failure(Exception):
    """One sentence that a user can act on."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class JobResult:
    """Outcome of one chargpt run: exit status, parsed output, and simgpu's report."""

    def __init__(self, returncode, stdout, stderr, report):
        self.returncode = returncode
        self.stdout = stdout
        self.stderr = stderr
        self.report = report
        self.checksum = self._find(r"checksum ([0-9a-f]{16})")
        self.peak_requested_bytes = int(self._find(r"peak_requested_bytes (\d+)") or 0)
        self.losses = [float(x) for x in re.findall(r"^step +\d+ .*?loss +([0-9.]+)", stdout, re.M)]
        self.step_ms = [float(x) for x in re.findall(r"^step .*?device_ms +([0-9.]+)", stdout, re.M)]

    def _find(self, pattern):
        found = re.search(pattern, self.stdout)
        return found.group(1) if found else None

    def median_step_ms(self):
        steady = sorted(self.step_ms[1:] or self.step_ms)
        return steady[len(steady) // 2] if steady else float("nan")


class Stack:
    def __init__(self, build, spec="memory=2GiB", directory=None):
        self.build = pathlib.Path(build).resolve()
        self.directory = pathlib.Path(directory or tempfile.mkdtemp(prefix="tidemark-"))
        self.spec = f"{spec},directory={self.directory}/simgpu"
        self.socket = self.directory / "tidemarkd.sock"
        self.admin = self.directory / "admin.sock"
        self.metrics_port = free_port()
        self.daemon = None
        self.reports = 0

    def binary(self, name):
        path = self.build / "bin" / name
        if not path.exists():
            raise Failure(f"{path} is missing; build it with ./dev build")
        return str(path)

    def environment(self, extra_spec="", **extra):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("TIDEMARK", "SIMGPU"))}
        env["SIMGPU"] = self.spec + ("," + extra_spec if extra_spec else "")
        env["LD_LIBRARY_PATH"] = str(self.build / "simgpu")
        env.update({k: str(v) for k, v in extra.items()})
        return env

    def start_daemon(self, *flags):
        """Starts tidemarkd; one that this stack still runs is ended first."""
        self.kill_daemon(signal.SIGTERM)
        log = open(self.directory / "tidemarkd.log", "ab")
        self.daemon = subprocess.Popen(
            [self.binary("tidemarkd"), "--socket", str(self.socket), "--state_dir",
             str(self.directory / "state"), "--admin_listen", f"unix:{self.admin}",
             "--metrics_listen", f"127.0.0.1:{self.metrics_port}", *flags],
            env=self.environment(), stdout=log, stderr=log)
        log.close()
        # The sockets of a killed daemon still exist, so only an answer counts.
        self.wait_for(lambda: self.answers() and self.admin.exists(), "tidemarkd to listen")

    def answers(self):
        try:
            return self.metric("tidemark_up") == 1.0
        except OSError:
            return False

    def kill_daemon(self, sig=signal.SIGKILL):
        if self.daemon:
            self.daemon.send_signal(sig)
            self.daemon.wait(timeout=20)
            self.daemon = None

    def wait_for(self, claim, what, seconds=20):
        deadline = time.monotonic() + seconds
        while not claim():
            if self.daemon and self.daemon.poll() is not None:
                log = (self.directory / "tidemarkd.log").read_text()[-800:]
                raise Failure(f"tidemarkd ended with {self.daemon.returncode}: {log}")
            if time.monotonic() > deadline:
                raise Failure(f"waited {seconds} s for {what}")
            time.sleep(0.02)

    def start_job(self, command, budget=None, bare=False, spec="", name=None, **env):
        """Starts `command`; under Tidemark unless `bare`. Returns the process, for finish_job()."""
        self.reports += 1
        report = self.directory / f"report.{self.reports}"
        spec = ",".join(filter(None, [spec, f"report={report}"]))
        argv = list(command)
        pid_file = self.directory / f"pid.{self.reports}"
        if not bare:
            wrapper = [self.binary("tidemark"), "run", "--simgpu", "--socket", str(self.socket),
                       "--pid-file", str(pid_file)]
            if budget:
                wrapper += ["--budget", str(budget)]
            if name:
                wrapper += ["--job", name]
            argv = wrapper + ["--"] + argv
        process = subprocess.Popen(argv, env=self.environment(spec, **env), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        process.report = report
        process.pid_file = pid_file
        process.heard = ""
        return process

    @staticmethod
    def read_line(process):
        """The job's next line of output, "" at its end. finish_job() returns it again.

        Reads byte by byte: process.stdout.readline() would take more than a line from the pipe into
        a buffer that communicate() does not look at.
        """
        line = b""
        while not line.endswith(b"\n"):
            byte = os.read(process.stdout.fileno(), 1)
            if not byte:
                break
            line += byte
        process.heard += line.decode()
        return line.decode()

    def finish_job(self, process, timeout=300):
        try:
            stdout, stderr = process.communicate(timeout=timeout)
            stdout = process.heard + stdout
        except subprocess.TimeoutExpired:
            process.kill()
            stdout, stderr = process.communicate()
            raise Failure(f"{process.args} still ran after {timeout} s: {stderr[-500:]}") from None
        report = {}
        if process.report.exists():
            for line in process.report.read_text().splitlines():
                key, _, value = line.partition(":")
                report[key.strip()] = value.strip()
        return JobResult(process.returncode, stdout, stderr, report)

    def run_job(self, command, timeout=300, **how):
        return self.finish_job(self.start_job(command, **how), timeout)

    def cli(self, *arguments):
        done = subprocess.run([self.binary("tidemark"), "--admin", f"unix:{self.admin}", *arguments],
                              env=self.environment(), capture_output=True, text=True, timeout=30)
        if done.returncode != 0:
            raise Failure(f"tidemark {' '.join(arguments)} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def metrics(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=10) as page:
            return page.read().decode()

    def metric(self, name, **labels):
        """Sum of the samples of `name` whose labels include `labels`."""
        total, seen = 0.0, False
        for line in self.metrics().splitlines():
            match = re.match(rf"{name}(?:\{{(.*)\}})? (\S+)$", line)
            if match and all(f'{k}="{v}"' in (match.group(1) or "") for k, v in labels.items()):
                total, seen = total + float(match.group(2)), True
        return total if seen else None

    def close(self):
        self.kill_daemon(signal.SIGTERM)
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()
