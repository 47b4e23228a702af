// Entry point of the `tidemark` command; everything is in dispatch.cc. Threads: one.

#include <string>
#include <vector>

#include "client/cli/verb.h"

int main(int argc, char** argv) {
  return tidemark::client::Main(std::vector<std::string>(argv + 1, argv + argc));
}
