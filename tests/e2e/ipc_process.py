#!/usr/bin/env python3
"""One side of the IPC test, speaking to the CUDA runtime through ctypes; knows nothing of Tidemark.

`ipc_process.py give BYTES`: allocates, fills, prints the handle in hex, waits for a line on stdin, and
checks the byte that the other side wrote. `ipc_process.py take HANDLE BYTES`: opens, checks, writes, closes.
"""

import ctypes
import sys

runtime = ctypes.CDLL("libcudart.so.13")
H2D, D2H = 1, 2
PATTERN = 0x5A


class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 64)]


def call(name, *arguments):
    result = getattr(runtime, name)(*arguments)
    if result != 0:
        sys.exit(f"{name} answered {result}")


def read(address, size):
    host = ctypes.create_string_buffer(size)
    call("cudaMemcpy", host, address, ctypes.c_size_t(size), D2H)
    return host.raw


def give(size):
    filler = ctypes.c_void_p()
    address = ctypes.c_void_p()
    call("cudaMalloc", ctypes.byref(filler), ctypes.c_size_t(3000))  # so that the buffer has an offset
    call("cudaMalloc", ctypes.byref(address), ctypes.c_size_t(size))
    call("cudaMemset", address, PATTERN, ctypes.c_size_t(size))
    call("cudaDeviceSynchronize")
    handle = Handle()
    call("cudaIpcGetMemHandle", ctypes.byref(handle), address)
    print(ctypes.string_at(ctypes.byref(handle), 64).hex(), flush=True)
    sys.stdin.readline()
    data = read(address, size)
    if data != bytes([PATTERN + 1]) + bytes([PATTERN]) * (size - 1):
        sys.exit("the other process's write did not arrive")
    call("cudaFree", address)
    print("seen")


def take(text, size):
    handle = Handle()
    ctypes.memmove(ctypes.byref(handle), bytes.fromhex(text), 64)
    address = ctypes.c_void_p()
    call("cudaIpcOpenMemHandle", ctypes.byref(address), handle, 1)
    if read(address, size) != bytes([PATTERN]) * size:
        sys.exit("the bytes are not those of the exporter")
    byte = ctypes.create_string_buffer(bytes([PATTERN + 1]), 1)
    call("cudaMemcpy", address, byte, ctypes.c_size_t(1), H2D)
    call("cudaDeviceSynchronize")
    call("cudaIpcCloseMemHandle", address)
    print("written")


if __name__ == "__main__":
    if sys.argv[1] == "give":
        give(int(sys.argv[2]))
    else:
        take(sys.argv[2], int(sys.argv[3]))
