// tidemarkd's entry point.

#include <cstdio>

int main() {
  std::fprintf(stderr, "tidemarkd: this build serves no jobs yet\n");
  return 1;
}
