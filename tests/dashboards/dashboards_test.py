"""Lint of dashboards/: what Grafana's dashboard linter and Prometheus' guides ask, and that every query
names only metrics that tidemarkd exports."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DASHBOARDS = ROOT / "dashboards"
FAMILIES = dict(re.findall(r"^# TYPE (\S+) (\S+)$", (ROOT / "tests/golden/metrics.txt").read_text(), re.M))
NAME = re.compile(r"\btidemark_\w+")
# Families without the labels gpu and job.
NODE_WIDE = {name for name in FAMILIES if not name.startswith(("tidemark_job_", "tidemark_device_"))}


def load():
    return {path.name: json.loads(path.read_text()) for path in sorted(DASHBOARDS.glob("*.json"))}


def panels(dashboard):
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def queries(dashboard):
    return [(panel, target["expr"]) for panel in panels(dashboard) for target in panel["targets"]]


class Dashboards(unittest.TestCase):
    def setUp(self):
        self.dashboards = load()

    def test_there_are_dashboards(self):
        self.assertEqual(set(self.dashboards), {"jobs.json", "node.json"})

    def test_json_is_what_the_table_makes(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, DASHBOARDS / "make_dashboards.py", folder], check=True)
            for name in self.dashboards:
                self.assertEqual((pathlib.Path(folder) / name).read_text(),
                                 (DASHBOARDS / name).read_text(),
                                 f"{name} was edited by hand; run dashboards/make_dashboards.py")

    def test_variables_exist_and_follow_the_time_range(self):
        for name, dashboard in self.dashboards.items():
            variables = {v["name"]: v for v in dashboard["templating"]["list"]}
            self.assertEqual(set(variables), {"datasource", "instance", "gpu", "job"}, name)
            self.assertEqual(variables["datasource"]["type"], "datasource")
            for variable in variables.values():
                if variable["type"] == "query":
                    self.assertEqual(variable["refresh"], 2, f"{name}: {variable['name']}")
                    self.assertEqual(variable["datasource"]["uid"], "${datasource}")
            self.assertFalse(dashboard["editable"], name)

    def test_every_panel_says_what_it_shows(self):
        for name, dashboard in self.dashboards.items():
            for panel in panels(dashboard):
                where = f"{name}: {panel['title']}"
                self.assertTrue(panel["title"], name)
                self.assertGreater(len(panel["description"]), 20, where)
                self.assertTrue(panel["fieldConfig"]["defaults"]["unit"], where)
                self.assertTrue(panel["targets"], where)
                self.assertNotEqual(panel["type"], "graph", where)
                for target in panel["targets"]:
                    self.assertEqual(target["datasource"]["uid"], "${datasource}", where)

    # No Grafana can be had from Debian or PyPI to render them: what follows is what it needs to.
    def test_panels_have_the_parts_that_grafana_draws(self):
        units = {"bytes", "percentunit", "dateTimeAsIso", "short", "ops", "Bps", "s"}
        for name, dashboard in self.dashboards.items():
            self.assertGreaterEqual(dashboard["schemaVersion"], 36, name)
            self.assertRegex(dashboard["uid"], r"^[a-zA-Z0-9_-]{1,40}$")
            ids = [panel["id"] for panel in dashboard["panels"]]
            self.assertEqual(len(ids), len(set(ids)), name)
            for panel in panels(dashboard):
                where = f"{name}: {panel['title']}"
                self.assertIn(panel["type"], {"timeseries", "stat", "gauge", "table", "bargauge"}, where)
                self.assertIn(panel["fieldConfig"]["defaults"]["unit"], units, where)
                self.assertIsInstance(panel["fieldConfig"]["overrides"], list, where)
                references = [target["refId"] for target in panel["targets"]]
                self.assertEqual(len(references), len(set(references)), where)
                for target in panel["targets"]:
                    self.assertEqual(target["datasource"]["type"], "prometheus", where)
                    self.assertLessEqual(set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])),
                                         {"gpu", "job", "state", "instance", "direction", "place"}, where)

    def test_no_two_panels_lie_on_each_other(self):
        for name, dashboard in self.dashboards.items():
            taken = {}
            for panel in dashboard["panels"]:
                at = panel["gridPos"]
                self.assertLessEqual(at["x"] + at["w"], 24, f"{name}: {panel['title']}")
                for cell in ((x, y) for x in range(at["x"], at["x"] + at["w"])
                             for y in range(at["y"], at["y"] + at["h"])):
                    self.assertNotIn(cell, taken, f"{name}: {panel['title']} lies on {taken.get(cell)}")
                    taken[cell] = panel["title"]

    def test_queries_name_only_families_that_exist(self):
        for name, dashboard in self.dashboards.items():
            for panel, query in queries(dashboard):
                used = NAME.findall(query)
                self.assertTrue(used, query)
                for metric in used:
                    self.assertIn(metric, FAMILIES, f"{name}: {panel['title']}")

    def test_queries_use_the_variables(self):
        for dashboard in self.dashboards.values():
            for _, query in queries(dashboard):
                for metric, selector in re.findall(r"(\btidemark_\w+)\{([^}]*)\}", query):
                    self.assertIn('instance=~"$instance"', selector, query)
                    if metric in NODE_WIDE:
                        continue
                    wanted = 'job=~"$job"' if metric.startswith("tidemark_job_") else 'gpu=~"$gpu"'
                    self.assertIn(wanted, selector, query)
                self.assertIsNone(re.search(r"\btidemark_\w+(?![\w{])", query), query)

    def test_counters_stand_inside_rate_with_the_rate_interval(self):
        for dashboard in self.dashboards.values():
            for _, query in queries(dashboard):
                inside = re.findall(r"rate\((\w+)\{[^}]*\}\[\$__rate_interval\]\)", query)
                for metric in NAME.findall(query):
                    self.assertEqual(FAMILIES[metric] == "counter", metric in inside, query)

    def test_every_family_that_tells_of_jobs_is_shown(self):
        shown = set(NAME.findall(" ".join(q for d in self.dashboards.values() for _, q in queries(d))))
        for metric in ("requested", "active", "reserved", "host_resident", "pinned"):
            self.assertTrue(any(metric in name for name in shown), metric)


class Rules(unittest.TestCase):
    TEXTS = {path.name: path.read_text() for path in (DASHBOARDS / "alerts.yml", DASHBOARDS / "recording.yml")}

    def test_promtool_accepts_the_rules(self):
        if shutil.which("promtool") is None:
            self.skipTest("needs promtool, from Debian's package prometheus")
        for name in self.TEXTS:
            done = subprocess.run(["promtool", "check", "rules", DASHBOARDS / name],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = subprocess.run(["promtool", "check", "config", DASHBOARDS / "prometheus.yml"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_promtool_accepts_every_query(self):
        if shutil.which("promtool") is None:
            self.skipTest("needs promtool, from Debian's package prometheus")
        lines = ["groups:", "- name: queries", "  rules:"]
        for number, query in enumerate(q for d in load().values() for _, q in queries(d)):
            # A rule's expression takes no Grafana variables.
            text = query.replace("$__rate_interval", "5m")
            lines += [f"  - record: query:number:{number}", f"    expr: {json.dumps(text)}"]
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            file.write("\n".join(lines) + "\n")
            file.flush()
            done = subprocess.run(["promtool", "check", "rules", file.name], capture_output=True,
                                  text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_recording_rules_are_named_by_level_metric_operations(self):
        for record in re.findall(r"- record: (\S+)", self.TEXTS["recording.yml"]):
            self.assertRegex(record, r"^[a-z_]+:tidemark_[a-z_]+:[a-z0-9]+$")

    def test_rules_name_only_metrics_that_exist(self):
        recorded = set(re.findall(r"- record: (\S+)", self.TEXTS["recording.yml"]))
        for text in self.TEXTS.values():
            expressions = re.findall(
                r"expr: (?:>-\n)?((?:.|\n)*?)(?=\n {6}\S|\n {8}(?:for|labels)|\Z)", text)
            self.assertEqual(len(expressions), text.count("expr: "))
            for expression in expressions:
                self.assertRegex(expression, r"tidemark_|up\{")
                for metric in re.findall(r"(?<![\w:])(tidemark_\w+)(?!\w*:)", expression):
                    self.assertIn(metric, FAMILIES)
                for rule in re.findall(r"\b\w+:tidemark_\w+:\w+", expression):
                    self.assertIn(rule, recorded)

    def test_alerts_say_how_long_how_bad_what_and_what_to_do(self):
        alerts = self.TEXTS["alerts.yml"].split("- alert: ")[1:]
        self.assertGreater(len(alerts), 3)
        for alert in alerts:
            self.assertRegex(alert, r"^Tidemark[A-Za-z]+\n")
            for part in ("for: ", "severity: ", "summary: ", "description: "):
                self.assertIn(part, alert)


if __name__ == "__main__":
    unittest.main()
