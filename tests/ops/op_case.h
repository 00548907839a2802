// One row describes an operation; OpCaseTest checks everything that holds for every operation:
//   Forward    f64, f32 against the reference; f16, bf16 against f32; inputs untouched; nothing leaks
//   Gradient   first and second derivative against central differences, for every list of shapes; one input alone
//   Layouts    transposed, offset, step-2 and repeated (stride 0) inputs
//   Threads    1 and 2 threads give the same bits, forward and gradient
// All of it on poisoned memory: an element that no kernel wrote is NaN.
// In tests/ops/F_test.cpp:
//   INSTANTIATE_TEST_SUITE_P(Softmax, OpCaseTest, testing::ValuesIn(softmax_rows()), op_case_name);
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "autograd/gradcheck.h"
#include "tensor/create.h"
#include "tests/reference/array.h"

namespace strata {

/// How one input is filled. Floating inputs take the row's dtypes in turn and get gradients.
struct Input {
  double low = -2;
  double high = 2;
  std::vector<double> kinks = {};   // no element within 0.05 of these, where the function bends or jumps
  std::optional<DType> dtype = {};  // a fixed dtype (indices, masks): whole numbers in [low, high), no gradient
};

inline Input floating(double low = -2, double high = 2, std::vector<double> kinks = {}) {
  return {low, high, std::move(kinks), {}};
}
/// Indices in [0, count).
inline Input indices(int64_t count, DType dtype = DType::i64) {
  return {0, static_cast<double>(count), {}, dtype};
}
inline Input booleans() {
  return {0, 2, {}, DType::boolean};
}

struct OpCase {
  std::string name;  // letters, digits and _
  std::vector<Input> inputs;
  // Lists of shapes, one shape per input. The first is the typical one; more for broadcasting, size 0, size 1.
  std::vector<std::vector<Dims>> shapes;
  TensorFunction op;
  std::function<reference::Array(const reference::Arrays&)> reference;

  std::vector<Dims> large = {};  // shapes that run in parallel, for Threads (the first list if empty)
  std::vector<DType> dtypes = {DType::f64, DType::f32, DType::f16, DType::bf16};
  std::optional<DType> result = {};  // dtype of the result where it is not that of the inputs
  double f64_tolerance = 1e-12;      // |y - reference| <= tolerance (1 + |reference|)
  double f32_tolerance = 4e-6;
  // f16 and bf16 against f32 on the same (rounded) inputs, u the unit roundoff of the dtype:
  // |y - y32| <= u |y32| + u (roundings - 1) max|y32| + 2^-24 accumulation max|y32|.
  int roundings = 1;           // how often the forward pass rounds to the dtype
  int gradient_roundings = 8;  // how often the backward pass does
  int64_t accumulation = 1;    // terms added up in f32 for one element
  bool differentiable = true;
  bool twice = true;          // second derivatives too
  bool exact_threads = true;  // false: 1 and 2 threads agree within the tolerance only
  GradcheckOptions gradcheck = {};
};

std::ostream& operator<<(std::ostream& out, const OpCase& row);
std::string op_case_name(const testing::TestParamInfo<OpCase>& info);

class OpCaseTest : public testing::TestWithParam<OpCase> {
 protected:
  void SetUp() override;
  void TearDown() override;

 private:
  int64_t bytes_before_ = 0;
};

/// A row's inputs, the same at every call.
std::vector<Tensor> make_inputs(const OpCase& row, const std::vector<Dims>& shapes, DType dtype);
reference::Array to_array(const Tensor& t);

}  // namespace strata
