"""Debian's Prometheus scrapes a tidemarkd with a job under budget, and is asked what it saw."""

import json
import pathlib
import shutil
import subprocess
import time
import urllib.parse
import urllib.request

from stack import free_port
from stack_case import StackCase, budget_of, main, tiny

RULES = pathlib.Path(__file__).resolve().parents[2] / "dashboards"


class Prometheus:
    """A private server in `stack`'s directory with the project's rules."""

    def __init__(self, stack):
        self.port = free_port()
        config = stack.directory / "prometheus.yml"
        config.write_text(
            "global: {scrape_interval: 200ms, evaluation_interval: 200ms}\n"
            f"rule_files: [{RULES}/recording.yml, {RULES}/alerts.yml]\n"
            "scrape_configs:\n"
            "  - job_name: tidemark\n"
            "    honor_labels: true\n"
            "    static_configs:\n"
            f"      - targets: ['127.0.0.1:{stack.metrics_port}']\n")
        self.log = open(stack.directory / "prometheus.log", "wb")
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={stack.directory}/tsdb",
             f"--web.listen-address=127.0.0.1:{self.port}"], stdout=self.log, stderr=self.log)

    def query(self, text):
        url = f"http://127.0.0.1:{self.port}/api/v1/query?" + urllib.parse.urlencode({"query": text})
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]["result"]
        except OSError:
            return []

    def value(self, text):
        result = self.query(text)
        return float(result[0]["value"][1]) if len(result) == 1 else None

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=30)
        self.log.close()


class PrometheusTest(StackCase):
    def wait_for_value(self, text, claim, seconds=60):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            value = self.prometheus.value(text)
            if value is not None and claim(value):
                return value
            time.sleep(0.1)
        self.fail(f"{text} was {self.prometheus.value(text)} after {seconds} s")

    def setUp(self):
        if shutil.which("prometheus") is None:
            self.skipTest("needs prometheus, from Debian's package of that name")
        super().setUp()
        self.stack.start_daemon()
        self.prometheus = Prometheus(self.stack)
        self.addCleanup(self.prometheus.close)

    def test_a_live_run_is_seen(self):
        self.wait_for_value("tidemark_up", lambda up: up == 1)
        self.wait_for_value("tidemark_jobs", lambda jobs: jobs == 0)
        # An endless run; it is ended below, when Prometheus has seen it.
        budget = budget_of(60)
        job = self.stack.start_job(tiny(self.stack, "--steps", "1000000", "--quiet"), budget=budget,
                                   name="watched")
        try:
            self.wait_for_value("tidemark_jobs", lambda jobs: jobs == 1)
            self.wait_for_value('sum(tidemark_job_launches_total{job="watched"})', lambda n: n > 100)
            self.wait_for_value('max(tidemark_job_reserved_bytes{job="watched"})', lambda n: n > 0)
            self.wait_for_value('max(tidemark_job_peak_reserved_bytes{job="watched"})',
                                lambda n: 0 < n <= budget)
            self.wait_for_value('sum(rate(tidemark_job_launches_total{job="watched"}[5s]))',
                                lambda n: n > 0)
            self.wait_for_value("max(gpu:tidemark_leased:ratio)", lambda share: 0 < share <= 1)
        finally:
            job.terminate()
            self.stack.finish_job(job, timeout=60)
        self.wait_for_value("tidemark_jobs", lambda jobs: jobs == 0)

    def test_states_sum_to_the_capacity(self):
        self.wait_for_value(
            "max(abs(sum without (state) (tidemark_device_memory_bytes) - tidemark_device_capacity_bytes))",
            lambda difference: difference == 0)

    def test_a_dead_daemon_raises_the_alert(self):
        self.wait_for_value('up{job="tidemark"}', lambda up: up == 1)
        self.stack.kill_daemon()
        self.wait_for_value('ALERTS{alertname="TidemarkDown"}', lambda one: one == 1)


if __name__ == "__main__":
    main()
