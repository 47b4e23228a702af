/* Is there a GPU that the CUDA driver can use? Prints its name and exits 0, or one sentence and 1.
 */
#include <dlfcn.h>
#include <stdio.h>

typedef int (*init_fn)(unsigned);
typedef int (*count_fn)(int*);
typedef int (*name_fn)(char*, int, int);

int main(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!driver) {
    printf("no CUDA driver: %s\n", dlerror());
    return 1;
  }
  init_fn init = (init_fn)dlsym(driver, "cuInit");
  count_fn count = (count_fn)dlsym(driver, "cuDeviceGetCount");
  name_fn name = (name_fn)dlsym(driver, "cuDeviceGetName");
  if (!init || !count || !name) {
    printf("libcuda.so.1 lacks cuInit, cuDeviceGetCount or cuDeviceGetName\n");
    return 1;
  }
  int devices = 0;
  int code = init(0);
  if (code == 0) code = count(&devices);
  if (code != 0 || devices == 0) {
    printf("the CUDA driver has no usable device: cuInit answered %d, %d devices\n", code, devices);
    return 1;
  }
  char text[128] = "";
  if (name(text, sizeof text, 0) != 0) text[0] = '\0';
  printf("%s, %d device(s)\n", text, devices);
  return 0;
}
