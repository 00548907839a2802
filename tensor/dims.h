// Up to 8 integers, inline: shapes, strides, lists of axes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "tensor/error.h"

namespace strata {

inline constexpr int kMaxRank = 8;

class Dims {
 public:
  Dims() = default;
  Dims(std::initializer_list<int64_t> values) : Dims(std::span(values.begin(), values.size())) {}
  explicit Dims(std::span<const int64_t> values) {
    check(values.size() <= kMaxRank, "shape: at most {} dimensions, got {}", kMaxRank, values.size());
    size_ = static_cast<int>(values.size());
    std::copy(values.begin(), values.end(), values_.begin());
  }
  static Dims filled(int size, int64_t value) {
    Dims d;
    for (int i = 0; i < size; ++i) d.push_back(value);
    return d;
  }

  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  int64_t operator[](int i) const { return values_[static_cast<size_t>(i)]; }
  int64_t& operator[](int i) { return values_[static_cast<size_t>(i)]; }
  int64_t back() const { return (*this)[size_ - 1]; }
  const int64_t* begin() const { return values_.data(); }
  const int64_t* end() const { return values_.data() + size_; }
  int64_t* begin() { return values_.data(); }
  int64_t* end() { return values_.data() + size_; }

  void push_back(int64_t value) {
    check(size_ < kMaxRank, "shape: at most {} dimensions, got more", kMaxRank);
    values_[static_cast<size_t>(size_++)] = value;
  }
  void insert(int at, int64_t value) {
    push_back(value);
    std::rotate(begin() + at, end() - 1, end());
  }
  void erase(int at) {
    std::copy(begin() + at + 1, end(), begin() + at);
    --size_;
  }

  friend bool operator==(const Dims& a, const Dims& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

 private:
  std::array<int64_t, kMaxRank> values_{};
  int size_ = 0;
};

/// Product of the sizes. Throws if it leaves int64.
int64_t numel(const Dims& shape);
/// "[2, 3]".
std::string to_string(const Dims& dims);
/// axis in [-rank, rank) -> [0, rank); `op` names the caller in the error.
int normalize_axis(int64_t axis, int rank, std::string_view op);

}  // namespace strata

template <>
struct fmt::formatter<strata::Dims> : fmt::formatter<std::string> {
  auto format(const strata::Dims& dims, fmt::format_context& ctx) const {
    return fmt::formatter<std::string>::format(strata::to_string(dims), ctx);
  }
};
