/* Preprocessed, not compiled: where the runtime's errors are. */
#include <driver_types.h>
