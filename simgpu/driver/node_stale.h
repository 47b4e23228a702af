// Folders of nodes whose last process was killed: nobody will use them again, and what lies in them
// is memory of the machine. Whoever joins any node removes them. Thread rule: callers hold the
// driver lock; other processes are kept out by the lock on each table.

#ifndef SIMGPU_DRIVER_NODE_STALE_H_
#define SIMGPU_DRIVER_NODE_STALE_H_

namespace simgpu {

// Looks where nodes live by default (`simgpu-*` in /dev/shm and /tmp, and one level below) at
// folders of this user. A node is dead when nobody holds the lock of any of its files, whatever its
// age; a folder that holds anything but a node's files is left alone.
void RemoveStaleNodes();

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_NODE_STALE_H_
