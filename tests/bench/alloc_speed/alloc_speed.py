"""What others use, for the table of `./dev bench alloc-speed`: fetches packages, compiles, runs.

Nothing of theirs is kept in the tree; packages lie in .cache. One that cannot be had drops its rows, and the
output says why. RMM 24.12 is the last release whose resources are headers. The two-level segregated fit is that of
the Vulkan Memory Allocator, of which no Debian package exists; a source package on PyPI carries it.
"""

import json
import pathlib
import subprocess
import sys
import tarfile
import urllib.request

import rmm_pool

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
VMA_PACKAGE = "vkdispatch-vulkan-native", "0.1.0"
MIMALLOC_PACKAGES = ["libmimalloc-dev", "libmimalloc2.0"]
DEFINE = {"rmm": "TIDEMARK_BENCH_RMM", "tlsf": "TIDEMARK_BENCH_TLSF", "mimalloc": "TIDEMARK_BENCH_MIMALLOC"}


def last_line(done):
    return " ".join((done.stderr or done.stdout).strip().splitlines()[-1:])


def rmm(cache, cuda):
    root, why = rmm_pool.unpacked(cache)
    if not root:
        return None, why
    root = root.resolve()
    include = root / "include"
    flags = ["-std=c++17", "-DSPDLOG_FMT_EXTERNAL", "-DLIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE",
             *[f"-isystem{path}" for path in (include, include / "rapids", include / "rapids/libcudacxx", cuda)]]
    libraries = [root / "lib64/libspdlog.so", root / "lib64/libfmt.so.11", f"-Wl,-rpath,{root}/lib64"]
    return (flags, libraries), ""


def tlsf(cache, _cuda):
    root = cache / "vma"
    if not list(root.glob("*/deps/VMA")):
        # Not `pip download`: that runs the package's build.
        name, version = VMA_PACKAGE
        root.mkdir(parents=True, exist_ok=True)
        try:
            with urllib.request.urlopen(f"https://pypi.org/pypi/{name}/json", timeout=60) as answer:
                files = json.load(answer)["releases"][version]
            url = next(f["url"] for f in files if f["packagetype"] == "sdist")
            archive, _ = urllib.request.urlretrieve(url, root / "package.tar.gz")
            with tarfile.open(archive) as package:
                package.extractall(root, members=[m for m in package.getmembers() if wanted(m)])
        except (OSError, KeyError, StopIteration, tarfile.TarError) as error:
            return None, f"the package {name} could not be had: {error}"
    deps = next(root.glob("*/deps"), None)
    if deps is None:
        return None, f"the package {VMA_PACKAGE[0]} has no headers of VMA"
    return (["-w", f"-isystem{deps}/VMA/include", f"-isystem{deps}/Vulkan-Headers/include"], []), ""


def wanted(member):
    parts = pathlib.PurePosixPath(member.name).parts
    return member.isfile() and ".." not in parts and parts[0] != "/" and parts[1:2] == ("deps",) and \
        parts[2:3] in {("VMA",), ("Vulkan-Headers",)}


def mimalloc(cache, _cuda):
    root = cache / "mimalloc"
    if not (root / "usr/include/mimalloc.h").exists():
        root.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["apt-get", "download", "-qq", *MIMALLOC_PACKAGES], cwd=root, capture_output=True,
                              text=True, check=False)
        packages = list(root.glob("*.deb"))
        if done.returncode != 0 or not packages:
            return None, f"Debian's {MIMALLOC_PACKAGES[0]} could not be had: {last_line(done)}"
        for package in packages:
            subprocess.run(["dpkg", "-x", package, root], check=True)
    library = next(root.glob("usr/lib/*/libmimalloc.so.2.0"), None)
    if library is None:
        return None, "the package has no libmimalloc.so.2.0"
    library = library.resolve()
    return ([f"-isystem{root}/usr/include"], [library, f"-Wl,-rpath,{library.parent}"]), ""


def compiled(source, flags, out):
    if out.exists() and out.stat().st_mtime > max(p.stat().st_mtime for p in HERE.iterdir() if p.is_file()):
        return ""
    command = ["c++", "-O2", "-DNDEBUG", "-std=c++20", f"-I{ROOT}", *flags, "-c", source, "-o", out]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"it did not compile: {' '.join(done.stderr.strip().splitlines()[:1])}"


def run(build, traces):
    work = build / "alloc_speed"
    work.mkdir(exist_ok=True)
    cuda = next(line.split("=", 1)[1] for line in (build / "CMakeCache.txt").read_text().splitlines()
                if line.startswith("TIDEMARK_CUDA_INCLUDE:"))
    objects, libraries, defines = [], [], []
    for name, find in (("rmm", rmm), ("tlsf", tlsf), ("mimalloc", mimalloc)):
        found, why = find(ROOT / ".cache", cuda)
        if found:
            why = compiled(HERE / f"{name}.cc", found[0], work / f"{name}.o")
        if why:
            print(f"{name}: not measured, {why}", flush=True)
            continue
        objects.append(work / f"{name}.o")
        libraries += found[1]
        defines.append(f"-D{DEFINE[name]}")
    program = work / "alloc_speed"
    command = ["c++", "-O2", "-DNDEBUG", "-std=c++20", f"-I{ROOT}", *defines, HERE / "alloc_speed.cc",
               HERE / "tidemark.cc", HERE / "nothing.cc", *(ROOT / f"interpose/{name}.cc" for name in ("futex", "biased_mutex")), *objects, "-o", program,
               *(build / f"lib/libtidemark_{name}.a" for name in ("replay", "file_text", "core")), *libraries, "-lz", "-lpthread"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"bench: alloc-speed did not build:\n{done.stderr}", file=sys.stderr)
        return 1
    return subprocess.run([program, *([traces] if traces else [])], check=False).returncode
