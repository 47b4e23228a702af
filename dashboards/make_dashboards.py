#!/usr/bin/env python3
"""Writes dashboards/*.json from the tables below.

A panel is one row here: title, description, unit, queries. Run it after an edit; a test checks that the
committed JSON is what it writes. Python's standard library only.
"""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
NODE = 'instance=~"$instance"'
GPU = NODE + ',gpu=~"$gpu"'
JOB = GPU + ',job=~"$job"'
PER_GPU = "{{instance}} {{gpu}}"
PER_JOB = "{{job}} on {{gpu}}"


def variable(name, label, query):
    return {"name": name, "label": label, "type": "query", "datasource": SOURCE, "refresh": 2,
            "query": {"query": query, "refId": name}, "definition": query, "includeAll": True,
            "multi": True, "allValue": ".*", "sort": 1, "current": {"text": "All", "value": "$__all"}}


VARIABLES = [
    {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus",
     "refresh": 1, "current": {}},
    variable("instance", "Node", "label_values(tidemark_up, instance)"),
    variable("gpu", "GPU",
             'label_values(tidemark_device_capacity_bytes{instance=~"$instance"}, gpu)'),
    variable("job", "Job", 'label_values(tidemark_job_attached_timestamp_seconds{'
                           'instance=~"$instance"}, job)'),
]


def rate(metric, selector, by):
    return f"sum by ({by}) (rate({metric}{{{selector}}}[$__rate_interval]))"


# Dashboard: (uid, title, description, rows). Row: (title, panels). Panel: (title, description, unit,
# [(query, legend)], options). Options: kind (default timeseries), stack, max.
NODE_DASHBOARD = ("tidemark-node", "Tidemark: node", "Who holds the memory of a node's GPUs.", [
    ("Utilisation", [
        ("Device memory by holder", "Leased by jobs, free in tidemarkd's pool, held by others, free. The "
         "stack is the device's memory.", "bytes",
         [(f"sum by (state) (tidemark_device_memory_bytes{{{GPU}}})", "{{state}}")], {"stack": True}),
        ("Leased share", "Leased memory over what tidemarkd may hand out. At 1 a further lease waits for "
         "another job to shrink.", "percentunit",
         [(f'sum by (instance, gpu) (tidemark_device_memory_bytes{{{GPU},state="leased"}}) / '
           f"sum by (instance, gpu) (tidemark_device_pool_budget_bytes{{{GPU}}})", PER_GPU)],
         {"max": 1}),
        ("Pinned host memory", "Held by jobs, beside the most that tidemarkd hands out and what the host "
         "has available.", "bytes",
         [(f"sum by (instance) (tidemark_host_used_bytes{{{NODE}}})", "{{instance}} used"),
          (f"sum by (instance) (tidemark_host_budget_bytes{{{NODE}}})", "{{instance}} budget"),
          (f"sum by (instance) (tidemark_host_available_bytes{{{NODE}}})", "{{instance}} available")], {}),
    ]),
    ("Saturation", [
        ("Refused leases", "Requests for memory that were answered with less than was asked, per second.",
         "ops", [(rate("tidemark_lease_refusals_total", NODE, "instance"), "{{instance}}")], {}),
        ("Chunks leased", "Chunks handed to jobs per second. A steady job leases none.", "ops",
         [(rate("tidemark_leases_total", NODE, "instance"), "{{instance}}")], {}),
        ("Attached jobs", "Jobs that hold a session with tidemarkd.", "short",
         [(f"sum by (instance) (tidemark_jobs{{{NODE}}})", "{{instance}}")], {}),
    ]),
    ("Errors", [
        ("Malformed messages", "Messages from jobs that tidemarkd dropped, per second. Above 0: a job of "
         "another version, or one that misbehaves.", "ops",
         [(rate("tidemark_bad_messages_total", NODE, "instance"), "{{instance}}")], {}),
        ("Reconnects", "Jobs that came back after a restart of tidemarkd, per second.", "ops",
         [(rate("tidemark_reconnects_total", NODE, "instance"), "{{instance}}")], {}),
        ("Up since", "When each tidemarkd started.", "dateTimeAsIso",
         [(f"1000 * max by (instance) (tidemark_start_timestamp_seconds{{{NODE}}})", "{{instance}}")],
         {"kind": "stat"}),
    ]),
])

JOBS_DASHBOARD = ("tidemark-jobs", "Tidemark: jobs", "What jobs keep on the device, what they move, what it "
                  "costs.", [
    ("Memory", [
        ("Device memory", "Active and reserved bytes beside the budget. Reserved touches the budget when "
         "memory is short.", "bytes",
         [(f"sum by (job, gpu) (tidemark_job_active_bytes{{{JOB}}})", PER_JOB + " active"),
          (f"sum by (job, gpu) (tidemark_job_reserved_bytes{{{JOB}}})", PER_JOB + " reserved"),
          (f"sum by (job, gpu) (tidemark_job_budget_bytes{{{JOB}}})", PER_JOB + " budget")], {}),
        ("Peak", "Largest requested bytes since the job attached, and the most it kept on the device.",
         "bytes",
         [(f"max by (job, gpu) (tidemark_job_peak_requested_bytes{{{JOB}}})", PER_JOB + " requested"),
          (f"max by (job, gpu) (tidemark_job_peak_reserved_bytes{{{JOB}}})", PER_JOB + " reserved")], {}),
        ("In host memory", "Live data that is in host memory now.", "bytes",
         [(f"sum by (job, gpu) (tidemark_job_host_resident_bytes{{{JOB}}})", PER_JOB)], {}),
        ("Pinned", "Memory that may not move: exported to other processes, registered, or in a graph.",
         "bytes", [(f"sum by (job, gpu) (tidemark_job_pinned_bytes{{{JOB}}})", PER_JOB)], {}),
        ("Served by the driver itself", "Arrays, pools and graphs on the device, and the job's own pinned host memory: "
         "counted, not moved.", "bytes",
         [(f"sum by (job, gpu) (tidemark_job_passed_through_bytes{{{JOB}}})", PER_JOB + " device"),
          (f"sum by (job, gpu) (tidemark_job_host_passed_through_bytes{{{JOB}}})", PER_JOB + " host")], {}),
        ("Utilisation at peak", "Peak active bytes over peak reserved bytes: what the allocator made of the "
         "memory it took.", "percentunit",
         [(f"max by (job, gpu) (tidemark_job_peak_utilisation_ratio{{{JOB}}})", PER_JOB)], {"max": 1}),
        ("External fragmentation", "1 - largest free hole / all free holes in mapped memory.", "percentunit",
         [(f"max by (job, gpu) (tidemark_job_external_fragmentation_ratio{{{JOB}}})", PER_JOB)],
         {"max": 1}),
    ]),
    ("Movement", [
        ("Bytes moved", "Per direction: d2h leaves the device, h2d comes back.", "Bps",
         [(rate("tidemark_job_moved_bytes_total", JOB, "job, gpu, direction"),
           PER_JOB + " {{direction}}")], {}),
        ("Stalled share", "Share of the time in which the job waited for memory to move.", "percentunit",
         [(rate("tidemark_job_stall_seconds_total", JOB, "job, gpu"), PER_JOB)], {"max": 1}),
        ("Chunks by reason", "Chunks evicted, prefetched and returned on demand, per second. Demand returns "
         "stall the job, prefetches need not.", "ops",
         [(rate("tidemark_job_evicted_chunks_total", JOB, "job, gpu"), PER_JOB + " evicted"),
          (rate("tidemark_job_prefetched_chunks_total", JOB, "job, gpu"), PER_JOB + " prefetched"),
          (rate("tidemark_job_demand_returned_chunks_total", JOB, "job, gpu"), PER_JOB + " on demand")],
         {}),
        ("Safepoint share", "Share of the time spent in pauses in which memory was remapped.", "percentunit",
         [(rate("tidemark_job_safepoint_seconds_total", JOB, "job, gpu"), PER_JOB)], {"max": 1}),
        ("Host-mapped accesses", "Launches per second that used host-resident memory in place, at the speed "
         "of the link.", "ops",
         [(rate("tidemark_job_host_mapped_accesses_total", JOB, "job, gpu"), PER_JOB)], {}),
    ]),
    ("Activity and errors", [
        ("Out of memory", "Out-of-memory results given to the job, per second.", "ops",
         [(rate("tidemark_job_ooms_total", JOB, "job, gpu"), PER_JOB)], {}),
        ("Allocations", "Allocations and frees per second.", "ops",
         [(rate("tidemark_job_allocations_total", JOB, "job, gpu"), PER_JOB + " allocations"),
          (rate("tidemark_job_frees_total", JOB, "job, gpu"), PER_JOB + " frees")], {}),
        ("Launches", "Kernels, copies and memsets per second.", "ops",
         [(rate("tidemark_job_launches_total", JOB, "job, gpu"), PER_JOB)], {}),
        ("Daemon round trips", "Requests of jobs to tidemarkd per second. A steady step makes none.", "ops",
         [(rate("tidemark_job_daemon_round_trips_total", NODE + ',job=~"$job"', "job"), "{{job}}")], {}),
    ]),
])


def panel(number, row, place):
    title, description, unit, queries, options = row
    kind = options.get("kind", "timeseries")
    custom = {"lineWidth": 1, "fillOpacity": 10, "showPoints": "never",
              "stacking": {"mode": "normal" if options.get("stack") else "none", "group": "A"}}
    defaults = {"unit": unit, "min": 0, "custom": custom if kind == "timeseries" else {}}
    if "max" in options:
        defaults["max"] = options["max"]
    targets = [{"refId": chr(ord("A") + i), "datasource": SOURCE, "expr": query, "legendFormat": legend}
               for i, (query, legend) in enumerate(queries)]
    shown = {"tooltip": {"mode": "multi", "sort": "desc"},
             "legend": {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "max"]}}
    return {"id": number, "type": kind, "title": title, "description": description,
            "datasource": SOURCE, "gridPos": place, "targets": targets,
            "fieldConfig": {"defaults": defaults, "overrides": []},
            "options": shown if kind == "timeseries" else {}}


def dashboard(spec):
    uid, title, description, rows = spec
    panels, y = [], 0
    for name, members in rows:
        panels.append({"id": len(panels) + 1, "type": "row", "title": name, "collapsed": False,
                       "panels": [], "gridPos": {"x": 0, "y": y, "w": 24, "h": 1}})
        y += 1
        for i, row in enumerate(members):
            place = {"x": i % 3 * 8, "y": y + i // 3 * 8, "w": 8, "h": 8}
            panels.append(panel(len(panels) + 1, row, place))
        y += (len(members) + 2) // 3 * 8
    return {"uid": uid, "title": title, "description": description, "tags": ["tidemark"],
            "editable": False, "schemaVersion": 38, "version": 1, "refresh": "30s", "timezone": "",
            "graphTooltip": 1, "time": {"from": "now-1h", "to": "now"},
            "templating": {"list": VARIABLES}, "annotations": {"list": []}, "panels": panels}


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    for name, spec in (("node", NODE_DASHBOARD), ("jobs", JOBS_DASHBOARD)):
        text = json.dumps(dashboard(spec), indent=2) + "\n"
        (folder / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
