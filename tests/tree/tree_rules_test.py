#!/usr/bin/env python3
"""Checks the rules of the source tree; the first argument is the repository root."""

import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ".").resolve()

LAYERS = {"core", "proto", "kernels", "interpose", "daemon", "client", "simgpu", "tests"}

# Which of our folders a folder's sources may include, besides their own.
MAY_INCLUDE = {
    "core": set(),
    "proto": set(),
    "kernels": set(),
    "interpose": {"core", "kernels", "proto/wire.h", "proto/address.h", "proto/datagram.h",
                  "proto/hints.h"},
    "daemon": {"core", "kernels", "proto"},
    "client": {"core", "kernels", "proto"},
    "simgpu": set(),
    "tests": LAYERS,
}

# System headers a folder must not touch, as regular expressions on the included name.
FOREIGN = {
    "core": r"cuda|absl/|grpc|google/protobuf|prometheus|thread$|fstream$|iostream$|unistd|sys/",
    "kernels": r"absl/|grpc|google/protobuf|prometheus|iostream$",
    "interpose": r"absl/|grpc|google/protobuf|prometheus|iostream$|cuda_runtime|fstream$|sstream$|stdexcept$",
    "simgpu": r"absl/|grpc|google/protobuf|prometheus",
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
SOURCES = {".h", ".cc", ".cu", ".c", ".def"}
# Files that are tables or golden text by nature.
LONG_FILES_ALLOWED = re.compile(r"(^LICENSE$|^tests/golden/|\.json$|\.def$)")
MAX_LINES = 600


def tracked():
    if shutil.which("git"):
        done = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, check=False)
        if done.returncode == 0 and done.stdout:
            return [pathlib.PurePath(name) for name in done.stdout.decode().split("\0") if name]
    # Without git: all but what .gitignore names.
    skip = {"build", ".git", ".cache"}
    paths = [p.relative_to(ROOT) for p in ROOT.rglob("*") if p.is_file()]
    return [p for p in paths if p.parts[0] not in skip and "__pycache__" not in p.parts and p.suffix != ".pyc"]


FILES = [f for f in tracked() if (ROOT / f).is_file()]


def text(name):
    return (ROOT / name).read_text(encoding="utf-8", errors="replace")


def target_allowed(source_layer, target, allowed):
    layer = target.split("/")[0]
    return layer == source_layer or layer in allowed or target in allowed


class IncludeRules(unittest.TestCase):
    def test_layers_include_only_what_the_design_allows(self):
        wrong = []
        for name in FILES:
            layer = name.parts[0]
            if layer not in MAY_INCLUDE or name.suffix not in SOURCES:
                continue
            for quote, target in INCLUDE.findall(text(name)):
                ours = "/" in target and target.split("/")[0] in LAYERS and quote == '"'
                # Generated protobuf headers are reached by their path under proto/.
                if ours and not target_allowed(layer, target, MAY_INCLUDE[layer]):
                    wrong.append(f"{name} includes {target}")
                if not ours and re.search(FOREIGN.get(layer, r"$^"), target):
                    if not (layer == "core" and target.startswith("core/")):
                        wrong.append(f"{name} includes <{target}>, which {layer}/ must not use")
        self.assertEqual(wrong, [])


class Folders(unittest.TestCase):
    def test_every_folder_says_what_it_is_in_at_most_40_lines(self):
        folders = {str(f.parent) for f in FILES if len(f.parts) > 1}
        folders = {f for f in folders if not f.startswith(".") and "golden" not in f}
        wrong = []
        for folder in sorted(folders):
            readme = ROOT / folder / "README.md"
            if not readme.is_file():
                # A folder that only holds other folders, or a generated path such as proto/tidemark/v1.
                if folder.startswith("proto/tidemark"):
                    continue
                wrong.append(f"{folder} has no README.md")
            elif len(readme.read_text().splitlines()) > 40:
                wrong.append(f"{folder}/README.md has more than 40 lines")
        self.assertEqual(wrong, [])

    def test_files_stay_readable_in_one_sitting(self):
        wrong = [f"{f}: {len(text(f).splitlines())} lines" for f in FILES
                 if f.suffix in SOURCES | {".py", ".sh"} and not LONG_FILES_ALLOWED.search(str(f))
                 and len(text(f).splitlines()) > MAX_LINES]
        self.assertEqual(wrong, [])

    def test_no_file_names_a_private_place(self):
        private = re.compile("|".join([r"/" + "work/", r"/\.lib" + "rary", r"/ro" + "ot/", r"\.py" + "env"]))
        wrong = [str(f) for f in FILES if f.suffix not in {".png", ".svg"} and private.search(text(f))]
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
