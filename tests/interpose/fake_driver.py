#!/usr/bin/env python3
"""Writes one FAKE(name) line for each driver function that fake_driver.c does not write by hand."""

import pathlib
import re
import sys

api, handwritten, out = sys.argv[1:]
own = set(re.findall(r"\bEXPORT CUresult (cu[A-Z]\w*)\(", pathlib.Path(handwritten).read_text()))
names = (line.split("\t")[0] for line in pathlib.Path(api).read_text().splitlines())
pathlib.Path(out).write_text("".join(f"FAKE({name})\n" for name in names if name not in own))
