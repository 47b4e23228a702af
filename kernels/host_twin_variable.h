// Device variables of a twin source: `__device__` and `__constant__` variables at file scope, one
// instance for each module that is loaded and each device, as on a GPU. Included by host_twin.h
// only. A source lists them once, before its kernels, in a macro that is given a macro:
//
//   using Table = float[4];
//   #define NORM_VARIABLES(VARIABLE) VARIABLE(kTwinConstant, Table, norm_table, = {1, 2})
//   TIDEMARK_TWIN_VARIABLES(NORM_VARIABLES);
//   ...
//   TIDEMARK_TWIN_REGISTER_WITH(norm, NORM_KERNELS, NORM_VARIABLES);
//
// Kernels then use them by name, as nvcc's do. What the host hands to cudaMemcpyToSymbol and the
// like is TIDEMARK_TWIN_SYMBOL(norm_table). Without `= ...` a variable begins as zeros. Not here:
// managed variables. Threads: as the kernels that use them.

#ifndef TIDEMARK_KERNELS_HOST_TWIN_VARIABLE_H_
#define TIDEMARK_KERNELS_HOST_TWIN_VARIABLE_H_

#if defined(__CUDACC__)

#define TIDEMARK_TWIN_QUALIFIER_kTwinDevice __device__
#define TIDEMARK_TWIN_QUALIFIER_kTwinConstant __constant__
#define TIDEMARK_TWIN_DEFINE_VARIABLE_(kind, type, name, ...) \
  TIDEMARK_TWIN_QUALIFIER_##kind type name __VA_ARGS__;
#define TIDEMARK_TWIN_VARIABLES(variables) \
  variables(TIDEMARK_TWIN_DEFINE_VARIABLE_) static_assert(true)
#define TIDEMARK_TWIN_SYMBOL(name) static_cast<const void*>(&name)

#else

#include <memory>
#include <type_traits>

namespace tidemark_twin {
namespace {

enum Kind { kTwinDevice, kTwinConstant };

// Stands for the instance that the running launch was given.
template <typename T, Kind kKind, uint32_t kIndex>
class Variable {
 public:
  using Value = std::conditional_t<kKind == kTwinConstant, const T, T>;

  operator Value&() const { return *operator&(); }
  Value* operator&() const { return static_cast<Value*>(current_launch->variables[kIndex]); }
  void operator=(const T& value) const requires(!std::is_array_v<T>) { *operator&() = value; }
  void operator+=(const T& value) const requires(!std::is_array_v<T>) { *operator&() += value; }
  auto& operator[](size_t index) const requires(std::is_array_v<T>) {
    return (*operator&())[index];
  }
};

}  // namespace
}  // namespace tidemark_twin

#define TIDEMARK_TWIN_NUMBER_VARIABLE_(kind, type, name, ...) kTwinIndexOf_##name,
#define TIDEMARK_TWIN_DEFINE_VARIABLE_(kind, type, name, ...)                          \
  struct TwinInitial_##name {                                                          \
    type value __VA_ARGS__;                                                            \
  };                                                                                   \
  [[maybe_unused]] static constexpr TwinInitial_##name tidemark_twin_initial_##name{}; \
  [[maybe_unused]] static constexpr tidemark_twin::Variable<type, tidemark_twin::kind, \
                                                            kTwinIndexOf_##name>       \
      name{};
#define TIDEMARK_TWIN_VARIABLES(variables)                       \
  enum : uint32_t { variables(TIDEMARK_TWIN_NUMBER_VARIABLE_) }; \
  variables(TIDEMARK_TWIN_DEFINE_VARIABLE_) static_assert(true)
#define TIDEMARK_TWIN_SYMBOL(name) static_cast<const void*>(std::addressof(name))

#endif  // __CUDACC__
#endif  // TIDEMARK_KERNELS_HOST_TWIN_VARIABLE_H_
