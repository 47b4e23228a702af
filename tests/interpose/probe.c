/* A small CUDA user for loader_test: does one thing the way some program does it, and prints what
 * it saw as "key=value" lines. Not linked to CUDA; linked_probe and runtime_probe are.
 *
 * Usage: probe WHAT. */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int (*Init)(unsigned);
typedef int (*Alloc)(uintptr_t*, size_t);
typedef int (*Free)(uintptr_t);
typedef int (*Lookup)(const char*, void**, int, uint64_t, int*);
typedef int (*OldLookup)(const char*, void**, int, uint64_t);

static void* library;

static void* Find(const char* name) {
  if (library == NULL) library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL) {
    printf("dlopen=%s\n", dlerror());
    exit(3);
  }
  void* found = dlsym(library, name);
  if (found == NULL) printf("missing=%s\n", name);
  return found;
}

static int Count(const char* folder, const char* prefix) {
  DIR* directory = opendir(folder);
  int count = 0;
  for (struct dirent* entry; (entry = readdir(directory)) != NULL;) {
    char path[512], target[512];
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
    ssize_t bytes = readlink(path, target, sizeof(target) - 1);
    target[bytes < 0 ? 0 : bytes] = '\0';
    count += prefix == NULL || strncmp(target, prefix, strlen(prefix)) == 0;
  }
  closedir(directory);
  return count;
}

static int Mapped(const char* name) {
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[1024];
  int found = 0;
  while (fgets(line, sizeof(line), maps) != NULL) found |= strstr(line, name) != NULL;
  fclose(maps);
  return found;
}

static void PrintFootprint(void) {
  printf("threads=%d\nsockets=%d\ndriver_mapped=%d\n", Count("/proc/self/task", NULL),
         Count("/proc/self/fd", "socket:"), Mapped("/libcuda.so.1"));
}

static int InitAndAlloc(void) {
  uintptr_t address = 0;
  int init = ((Init)Find("cuInit"))(0);
  int alloc = ((Alloc)Find("cuMemAlloc_v2"))(&address, 4096);
  int freed = ((Free)Find("cuMemFree_v2"))(address);
  printf("init=%d alloc=%d free=%d address=%d\n", init, alloc, freed, address != 0);
  return init != 0 || alloc != 0 || freed != 0;
}

/* Every argument register, integer and vector, through a forwarded and through a hooked entry. */
static int Arguments(void) {
  typedef int (*Launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        void*, void**, void**);
  typedef int (*ParamSetf)(void*, int, float);
  int set = ((ParamSetf)Find("cuParamSetf"))((void*)0x77, 12, 2.5f);
  int launch = ((Launch)Find("cuLaunchKernel"))((void*)0x99, 1, 2, 3, 4, 5, 6, 7, NULL, NULL, NULL);
  printf("set=%d launch=%d\n", set, launch);
  return set + launch;
}

static void PrintOwner(const char* symbol, int version, int flags, int result, int status,
                       void* p) {
  Dl_info info = {0};
  const char* owner = "none";
  const char* name = "none";
  if (p != NULL && dladdr(p, &info) != 0) {
    owner = strstr(info.dli_fname, "preload") != NULL ? "hook" : "driver";
    name = info.dli_sname != NULL ? info.dli_sname : "unnamed";
  }
  printf("%s/%d/%d=%d,%d,%s,%s\n", symbol, version, flags, result, status, owner, name);
}

static void LookUp(const char* symbol, int version, int flags) {
  void* p = (void*)1;
  int status = -1;
  int result = ((Lookup)Find("cuGetProcAddress_v2"))(symbol, &p, version, (uint64_t)flags, &status);
  PrintOwner(symbol, version, flags, result, status, p);
}

static int LookUps(void) {
  LookUp("cuMemAlloc", 13000, 0);
  LookUp("cuMemAlloc", 3000, 0);
  LookUp("cuMemAlloc", 99000, 0);
  LookUp("cuMemAlloc", 1000, 0);
  LookUp("cuMemcpyHtoDAsync", 13000, 0);
  LookUp("cuMemcpyHtoDAsync", 13000, 2);
  LookUp("cuGetProcAddress", 13000, 0);
  LookUp("cuGetProcAddress", 11030, 0);
  LookUp("cuBrandNewThing", 13000, 0);
  LookUp("cudnnCreate", 13000, 0);
  void* p = (void*)1;
  int result = ((OldLookup)Find("cuGetProcAddress"))("cuMemAlloc", &p, 11030, 0);
  PrintOwner("old:cuMemAlloc", 11030, 0, result, 0, p);
  const void* table = NULL;
  int (*export_table)(const void**, const void*) =
      (int (*)(const void**, const void*))Find("cuGetExportTable");
  int result_of_table = export_table(&table, &library);
  printf("export_table=%d,%d\n", result_of_table, table == &library);
  return 0;
}

static int InChild(int (*work)(void)) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    int failed = work();
    fflush(stdout);
    _exit(failed);
  }
  int status = 0;
  waitpid(child, &status, 0);
  printf("child=%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  return 0;
}

static pthread_barrier_t barrier;

static void* ColdStart(void* unused) {
  (void)unused;
  pthread_barrier_wait(&barrier);
  uintptr_t address = 0;
  void* here = dlopen("libcuda.so.1", RTLD_NOW);
  long failed = ((Init)dlsym(here, "cuInit"))(0) != 0;
  failed |= ((Alloc)dlsym(here, "cuMemAlloc_v2"))(&address, 4096) != 0;
  return (void*)(failed | (address == 0));
}

static int Threads(void) {
  enum { kThreads = 16 };
  pthread_t threads[kThreads];
  int failed = 0;
  pthread_barrier_init(&barrier, NULL, kThreads);
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, &ColdStart, NULL);
  for (int i = 0; i < kThreads; ++i) {
    void* result = NULL;
    pthread_join(threads[i], &result);
    failed += result != NULL;
  }
  printf("failed_threads=%d\n", failed);
  return failed;
}

/* As NCCL does: host memory through VMM from a thread without a context. */
static int HostCreate(void) {
  struct {
    int type, handle_types, location_type, location_id;
    void* metadata;
    unsigned char flags[8];
  } properties = {1, 1, 3 /* HOST_NUMA */, 0, NULL, {0}};
  uint64_t handle = 0;
  int init = ((Init)Find("cuInit"))(0);
  int create = ((int (*)(uint64_t*, size_t, const void*, unsigned long long))Find("cuMemCreate"))(
      &handle, 2 << 20, &properties, 0);
  int release = ((int (*)(uint64_t))Find("cuMemRelease"))(handle);
  printf("init=%d create=%d release=%d\n", init, create, release);
  return create + release;
}

static uintptr_t kept_address;
static Free kept_free;

static void FreeAtExit(void) {
  printf("free_at_exit=%d\n", kept_free(kept_address));
  fflush(stdout);
}

static int AtExit(void) {
  atexit(&FreeAtExit);
  kept_free = (Free)Find("cuMemFree_v2");
  ((Init)Find("cuInit"))(0);
  return ((Alloc)Find("cuMemAlloc_v2"))(&kept_address, 4096);
}

static int Close(void) {
  Alloc alloc = (Alloc)Find("cuMemAlloc_v2");
  ((Init)Find("cuInit"))(0);
  int first = dlclose(library);
  uintptr_t address = 0;
  printf("dlclose=%d alloc_after=%d\n", first, alloc(&address, 64));
  library = NULL;
  return InitAndAlloc();
}

static int DeepBind(void) {
  library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_DEEPBIND);
  PrintOwner("cuMemAlloc_v2", 0, 0, 0, 0, Find("cuMemAlloc_v2"));
  return InitAndAlloc();
}

/* A library whose names begin as the driver's do is nobody's business. */
static int Prefix(void) {
  void* other = dlopen(getenv("PROBE_LIBRARY"), RTLD_NOW);
  int (*create)(void) = (int (*)(void))dlsym(other, "cudnnCreate");
  int (*foo)(void) = (int (*)(void))dlsym(other, "cuFooInit");
  printf("cudnnCreate=%d cuFooInit=%d\n", create(), foo());
  printf("ours_has_it=%d\n", dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cudnnCreate") != NULL);
  return 0;
}

/* The plugin's libcudart lies in a scope that RTLD_NEXT does not search. */
static int Plugin(void) {
  void* plugin = dlopen(getenv("PROBE_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
  int (*plugin_malloc)(size_t) = (int (*)(size_t))dlsym(plugin, "PluginMalloc");
  int first = plugin_malloc(4096);
  printf("plugin=%d again=%d\n", first, plugin_malloc(4096));
  return 0;
}

static int FailsInChild(void) {
  int init = ((Init)Find("cuInit"))(0);
  printf("child_init=%d\n", init);
  return init != 0;
}

/* The error of a machine without a driver, and its text. */
static int WithoutDriver(void) {
  const char* text = NULL;
  int init = ((Init)Find("cuInit"))(0);
  int named = ((int (*)(int, const char**))Find("cuGetErrorString"))(init, &text);
  printf("init=%d named=%d text=%s\n", init, named, text);
  return 0;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "idle";
  int result = 0;
  if (strcmp(what, "idle") == 0)
    PrintFootprint();
  else if (strcmp(what, "dlopen") == 0)
    result = InitAndAlloc();
  else if (strcmp(what, "arguments") == 0)
    result = Arguments();
  else if (strcmp(what, "lookups") == 0)
    LookUps(), PrintFootprint();
  else if (strcmp(what, "fork-before") == 0)
    result = InChild(&InitAndAlloc) + InitAndAlloc();
  else if (strcmp(what, "fork-after") == 0)
    result = InitAndAlloc() + InChild(&FailsInChild) + InitAndAlloc();
  else if (strcmp(what, "exec") == 0)
    InitAndAlloc(), fflush(stdout), execl(argv[0], argv[0], "dlopen", NULL);
  else if (strcmp(what, "threads") == 0)
    result = Threads();
  else if (strcmp(what, "host-create") == 0)
    result = HostCreate();
  else if (strcmp(what, "at-exit") == 0)
    result = AtExit();
  else if (strcmp(what, "dlclose") == 0)
    result = Close();
  else if (strcmp(what, "deepbind") == 0)
    result = DeepBind();
  else if (strcmp(what, "prefix") == 0)
    result = Prefix();
  else if (strcmp(what, "plugin") == 0)
    result = Plugin();
  else if (strcmp(what, "without-driver") == 0)
    result = WithoutDriver();
  else
    result = 64;
  return result;
}
