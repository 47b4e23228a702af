// A growable array that answers "no" where std::vector would throw: for code that runs inside other
// people's processes. Size what you need before the first decision, and nothing fails midway.
// Elements are trivially copyable. Threads: none of its own.

#ifndef TIDEMARK_CORE_ARRAY_H_
#define TIDEMARK_CORE_ARRAY_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

namespace tidemark::core {

template <typename T>
class Array {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Array() = default;
  ~Array() { std::free(data_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  Array(Array&& other) noexcept { *this = std::move(other); }
  Array& operator=(Array&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }

  // False: out of host memory, and the array is as before.
  [[nodiscard]] bool Reserve(size_t capacity) {
    if (capacity <= capacity_) return true;
    if (capacity > SIZE_MAX / sizeof(T)) return false;
    void* grown = std::realloc(data_, capacity * sizeof(T));
    if (grown == nullptr) return false;
    data_ = static_cast<T*>(grown);
    capacity_ = capacity;
    return true;
  }
  // New elements are copies of `fill`.
  [[nodiscard]] bool Resize(size_t size, const T& fill = T()) {
    if (!Reserve(size)) return false;
    for (size_t i = size_; i < size; ++i) data_[i] = fill;
    size_ = size;
    return true;
  }
  [[nodiscard]] bool Append(const T& value) {
    const T copy = value;  // `value` may lie in the memory that moves
    if (size_ == capacity_ && !Reserve(capacity_ < 8 ? 16 : capacity_ * 2)) return false;
    data_[size_++] = copy;
    return true;
  }
  [[nodiscard]] bool CopyFrom(const Array& other) {
    if (!Reserve(other.size_)) return false;
    if (other.size_ != 0) std::memcpy(data_, other.data_, other.size_ * sizeof(T));
    size_ = other.size_;
    return true;
  }
  void Clear() { size_ = 0; }
  // No more elements than there are.
  void Shrink(size_t size) { size_ = size; }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_ARRAY_H_
