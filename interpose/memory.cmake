# The memory side of the preloaded library: what stands behind interpose/manager.h. Linked into the
# library itself and into its unit tests, with the same restrictions in both.
