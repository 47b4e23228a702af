/* The wire header compiles as plain C, and no struct has padding that differs between compilers:
 * every field sits where the sum of those before it says. */

#include <stddef.h>
#include <stdio.h>

#include "proto/wire.h"

static int failures;

static void expect(size_t is, size_t should, const char* what) {
  if (is == should) return;
  fprintf(stderr, "%s is %zu, expected %zu\n", what, is, should);
  ++failures;
}

int main(void) {
  expect(offsetof(struct tm_wire_header, sequence), 12, "header.sequence");
  expect(offsetof(struct tm_wire_hello, device_uuid), 24, "hello.device_uuid");
  expect(offsetof(struct tm_wire_hello, job_name), 304, "hello.job_name");
  expect(offsetof(struct tm_wire_welcome, reason), 104, "welcome.reason");
  expect(offsetof(struct tm_wire_leased, bytes_short), 536, "leased.bytes_short");
  expect(offsetof(struct tm_wire_chunks, chunk_id), 32, "chunks.chunk_id");
  expect(offsetof(struct tm_wire_share, offset_bytes), 64, "share.offset_bytes");
  expect(offsetof(struct tm_wire_policy_page, sequence), 8, "policy_page.sequence");
  expect(sizeof(struct tm_wire_policy_page), 64 + 16 * 16, "policy_page");
  expect(sizeof(struct tm_wire_counters_device), 28 * 8, "counters_device");
  expect(sizeof(struct tm_wire_counters_page), 40 + 16 * 28 * 8, "counters_page");
  return failures == 0 ? 0 : 1;
}
