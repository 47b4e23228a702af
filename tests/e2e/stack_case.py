"""What the end-to-end tests share: the --build flag, the tiny job, and its bare result."""

import functools
import sys
import unittest

from stack import MIB, Stack

BUILD = "build/release"


def main():
    global BUILD
    if "--build" in sys.argv:
        at = sys.argv.index("--build")
        BUILD = sys.argv[at + 1]
        del sys.argv[at:at + 2]
    unittest.main(verbosity=2)


@functools.cache
def bare(*flags):
    """Result of the tiny job without Tidemark, on a device that is large enough."""
    with Stack(BUILD) as stack:
        result = stack.run_job(tiny(stack, *flags), bare=True)
    assert result.returncode == 0 and result.checksum, result.stderr
    return result


def tiny(stack, *flags):
    return [stack.binary("chargpt"), "--size", "tiny", *flags]


def budget_of(share, *flags):
    """`share` percent of what the tiny job wants, in whole chunks."""
    return bare(*flags).peak_requested_bytes * share // 100 // (2 * MIB) * 2 * MIB


class StackCase(unittest.TestCase):
    spec = "memory=2GiB"

    def setUp(self):
        self.stack = Stack(BUILD, self.spec)
        self.addCleanup(self.stack.close)

    def assert_same_bits(self, result, *flags):
        self.assertEqual(result.returncode, 0, result.stderr[-1500:])
        self.assertEqual(result.checksum, bare(*flags).checksum)
        for key in ("races", "illegal_addresses"):
            self.assertEqual(result.report.get(key, "0"), "0", result.stderr[-1500:])

    def wait_until(self, claim, seconds):
        """Polls; `seconds` bounds a broken run, it is no measurement."""
        self.stack.wait_for(claim, claim.__doc__ or "the condition", seconds)
