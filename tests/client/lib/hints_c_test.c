// The public header is plain C11, and every function links from C. Not preloaded: each call says so
// and changes nothing.

#include <stdio.h>
#include <string.h>

#include "tidemark/tidemark.h"

static int failures;

static void Expect(const char* what, int status) {
  if (status == TM_NOT_UNDER_TIDEMARK) return;
  fprintf(stderr, "%s answered %d, %s\n", what, status, tm_status_text(status));
  ++failures;
}

int main(void) {
  char memory[8] = "same";
  size_t count = 99;
  tm_device_memory device;
  tm_buffer_memory buffer;
  Expect("tm_active", tm_active());
  Expect("tm_mark_step", tm_mark_step());
  Expect("tm_mark_phase", tm_mark_phase(TM_FORWARD));
  Expect("tm_register", tm_register(memory, sizeof memory, TM_PARAMETER));
  Expect("tm_will_use", tm_will_use(memory, sizeof memory));
  Expect("tm_done_with", tm_done_with(memory, sizeof memory));
  Expect("tm_pin", tm_pin(memory, sizeof memory));
  Expect("tm_unpin", tm_unpin(memory, sizeof memory));
  Expect("tm_snapshot_devices", tm_snapshot_devices(&device, 1, &count));
  Expect("tm_snapshot_buffers", tm_snapshot_buffers(&buffer, 1, &count));
  if (count != 0 || strcmp(memory, "same") != 0) ++failures;
  if (tm_snapshot_devices(NULL, 1, &count) != TM_BAD_ARGUMENT) ++failures;
  if (tm_version() >> 16 != TM_VERSION_MAJOR) ++failures;
  for (int status = -1; status < 20; ++status) {
    if (strlen(tm_status_text(status)) == 0) ++failures;
  }
  return failures == 0 ? 0 : 1;
}
