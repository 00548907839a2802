#include "tests/ops/op_case.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "autograd/autograd.h"
#include "tensor/allocator.h"
#include "tensor/ledger.h"
#include "tensor/parallel.h"
#include "tensor/random.h"

namespace strata {

std::ostream& operator<<(std::ostream& out, const OpCase& row) {
  return out << row.name;
}
std::string op_case_name(const testing::TestParamInfo<OpCase>& info) {
  return info.param.name;
}

namespace {

double draw(const Input& input, Generator& generator) {
  while (true) {
    double value = input.low + (input.high - input.low) * static_cast<double>(generator.uniform());
    if (input.dtype) return std::floor(value);
    bool near_kink = false;
    for (double kink : input.kinks) near_kink = near_kink || std::abs(value - kink) < 0.05;
    if (!near_kink) return value;
  }
}

Tensor with_dtype_of(const Tensor& values, DType dtype) {
  return values.dtype() == dtype ? values : clone_data(values, dtype);
}

}  // namespace

std::vector<Tensor> make_inputs(const OpCase& row, const std::vector<Dims>& shapes, DType dtype) {
  EXPECT_EQ(shapes.size(), row.inputs.size());
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < shapes.size(); ++i) {
    Generator generator(derive_seed(i + 1, row.name));
    std::vector<double> values(static_cast<size_t>(numel(shapes[i])));
    for (double& value : values) value = draw(row.inputs[i], generator);
    inputs.push_back(with_dtype_of(from_values(values, shapes[i]), row.inputs[i].dtype.value_or(dtype)));
  }
  return inputs;
}

reference::Array to_array(const Tensor& t) {
  return {t.shape(), to_vector<double>(t)};
}

namespace {

reference::Array reference_of(const OpCase& row, const std::vector<Tensor>& inputs) {
  reference::Arrays arrays;
  for (const Tensor& input : inputs) arrays.push_back(to_array(input));
  return row.reference(arrays);
}

double greatest(const std::vector<double>& values) {
  double m = 0;
  for (double v : values)
    if (std::isfinite(v)) m = std::max(m, std::abs(v));
  return m;
}

/// Every |got - expected| <= bound(expected); infinities must be equal, NaN meets NaN.
template <class F>
void expect_close(const reference::Array& got, const reference::Array& expected, const std::string& what, F&& bound) {
  ASSERT_EQ(got.shape, expected.shape) << what;
  for (int64_t i = 0; i < got.count(); ++i) {
    double a = got[i], b = expected[i];
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    ASSERT_LE(std::abs(a - b), bound(b)) << what << ": element " << to_string(got.index(i)) << " is "
                                         << fmt::format("{:.10g}, expected {:.10g}", a, b);
  }
}

double tolerance(const OpCase& row, DType dtype) {
  return dtype == DType::f64 ? row.f64_tolerance : row.f32_tolerance;
}

void expect_reference(const OpCase& row, const std::vector<Tensor>& inputs, DType dtype, const std::string& what) {
  Tensor y = row.op(inputs);
  EXPECT_EQ(y.dtype(), row.result.value_or(dtype)) << what;
  double tol = tolerance(row, dtype);
  expect_close(to_array(y), reference_of(row, inputs), what, [&](double r) { return tol * (1 + std::abs(r)); });
}

/// Unit roundoff: half the distance from 1 to the next number.
double roundoff(DType dtype) {
  return dtype == DType::f16 ? 0x1p-11 : 0x1p-8;
}

void expect_reduced_close(const OpCase& row, const Tensor& got, const Tensor& f32, DType dtype, int roundings,
                          const std::string& what) {
  reference::Array expected = to_array(f32);
  double scale = greatest(expected.values), u = roundoff(dtype);
  double common = u * (roundings - 1) * scale + 0x1p-24 * static_cast<double>(row.accumulation) * scale + 0x1p-24;
  expect_close(to_array(got), expected, what, [&](double r) { return u * std::abs(r) + common; });
}

bool has(const OpCase& row, DType dtype) {
  return std::find(row.dtypes.begin(), row.dtypes.end(), dtype) != row.dtypes.end();
}

std::string text(const std::vector<Dims>& shapes) {
  std::string out;
  for (const Dims& shape : shapes) out += to_string(shape);
  return out;
}

/// Fixed weights in [0.5, 1.5) of y's shape and dtype.
Tensor incoming_gradient(const Tensor& y) {
  Generator generator(5);
  Tensor dy = empty_like(y);
  uniform_(dy, 0.5, 1.5, generator);
  return dy;
}

/// The result and then the gradient of every floating input for which `wanted` holds.
std::vector<Tensor> run_with_gradients(const OpCase& row, const std::vector<Tensor>& inputs,
                                       const std::function<bool(size_t)>& wanted) {
  std::vector<Tensor> leaves, marked;
  for (size_t i = 0; i < inputs.size(); ++i) {
    leaves.push_back(detach(inputs[i]));
    if (is_floating(inputs[i].dtype()) && wanted(i)) marked.push_back(set_requires_grad(leaves.back()));
  }
  Tensor y = row.op(leaves);
  std::vector<Tensor> results{detach(y)};
  if (!row.differentiable || marked.empty()) return results;
  std::vector<Tensor> all = gradients({y}, marked, {incoming_gradient(y)});
  for (size_t i = 0; i < all.size(); ++i) results.push_back(all[i] ? all[i] : zeros_like(marked[i]));
  return results;
}

std::vector<Tensor> run_with_gradients(const OpCase& row, const std::vector<Tensor>& inputs) {
  return run_with_gradients(row, inputs, [](size_t) { return true; });
}

std::vector<uint8_t> bits(const Tensor& t) {
  Tensor dense = clone_data(t);
  std::vector<uint8_t> out(static_cast<size_t>(dense.bytes()));
  if (!out.empty()) std::memcpy(out.data(), dense.raw_data(), out.size());
  return out;
}

}  // namespace

void OpCaseTest::SetUp() {
  allocator::set_poison(true);
  bytes_before_ = ledger::current().total();
}

void OpCaseTest::TearDown() {
  EXPECT_EQ(ledger::current().total(), bytes_before_) << "the operation leaks";
  allocator::set_poison(false);
}

TEST_P(OpCaseTest, Forward) {
  const OpCase& row = GetParam();
  for (const auto& shapes : row.shapes)
    for (DType dtype : {DType::f64, DType::f32}) {
      if (!has(row, dtype)) continue;
      SCOPED_TRACE(fmt::format("{} {}", dtype_name(dtype), text(shapes)));
      std::vector<Tensor> inputs = make_inputs(row, shapes, dtype);
      expect_reference(row, inputs, dtype, "result");
      std::vector<Tensor> again = make_inputs(row, shapes, dtype);
      for (size_t i = 0; i < inputs.size(); ++i) EXPECT_EQ(bits(inputs[i]), bits(again[i])) << "input written";
    }
}

TEST_P(OpCaseTest, ReducedPrecision) {
  const OpCase& row = GetParam();
  if (!has(row, DType::f16) && !has(row, DType::bf16)) {
    EXPECT_FALSE(row.dtypes.empty());
    return;
  }
  for (DType dtype : {DType::f16, DType::bf16}) {
    if (!has(row, dtype)) continue;
    SCOPED_TRACE(dtype_name(dtype));
    std::vector<Tensor> inputs = make_inputs(row, row.shapes[0], dtype), wide;
    for (const Tensor& input : inputs)
      wide.push_back(is_floating(input.dtype()) ? clone_data(input, DType::f32) : input);
    std::vector<Tensor> got = run_with_gradients(row, inputs), expected = run_with_gradients(row, wide);
    EXPECT_EQ(got[0].dtype(), row.result.value_or(dtype));
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i)
      expect_reduced_close(row, got[i], expected[i], dtype, i == 0 ? row.roundings : row.gradient_roundings,
                           i == 0 ? "result" : "gradient " + std::to_string(i));
  }
}

TEST_P(OpCaseTest, Gradient) {
  const OpCase& row = GetParam();
  for (const auto& shapes : row.shapes) {
    SCOPED_TRACE(text(shapes));
    std::vector<Tensor> inputs = make_inputs(row, shapes, has(row, DType::f64) ? DType::f64 : row.dtypes[0]);
    if (!row.differentiable) {
      for (Tensor& input : inputs)
        if (is_floating(input.dtype())) set_requires_grad(input);
      EXPECT_FALSE(requires_grad(row.op(inputs)));
      continue;
    }
    if (!has(row, DType::f64)) continue;
    EXPECT_EQ(gradcheck(row.op, inputs, row.gradcheck).mismatch, "");
    if (!row.twice) continue;
    EXPECT_EQ(gradgradcheck(row.op, inputs, row.gradcheck).mismatch, "") << "second derivative";
  }
}

// A formula may share work between inputs; asked for one alone it must give the same.
TEST_P(OpCaseTest, GradientOfOneInput) {
  const OpCase& row = GetParam();
  std::vector<Tensor> inputs = make_inputs(row, row.shapes[0], row.dtypes[0]);
  std::vector<Tensor> all = run_with_gradients(row, inputs);
  size_t next = 1;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!is_floating(inputs[i].dtype())) continue;
    std::vector<Tensor> one = run_with_gradients(row, inputs, [&](size_t k) { return k == i; });
    EXPECT_EQ(bits(one[0]), bits(all[0])) << "result with only input " << i << " marked";
    if (!row.differentiable) continue;
    EXPECT_EQ(to_array(one[1]).values, to_array(all[next++]).values) << "gradient of input " << i << " alone";
  }
}

namespace {

struct Variant {
  const char* name;
  Tensor (*make)(const Tensor& dense);
};

/// What lies beside the elements: NaN in floats, so that a wrong read shows.
Tensor surroundings(const Dims& shape, DType dtype) {
  return full(shape, is_floating(dtype) ? NAN : 0, {dtype});
}

Tensor transposed(const Tensor& t) {
  Dims reversed, axes;
  for (int i = t.rank() - 1; i >= 0; --i) {
    reversed.push_back(t.shape()[i]);
    axes.push_back(i);
  }
  Tensor whole = empty(reversed, {t.dtype()});
  Tensor view = alias(whole, whole.layout().permute(axes));
  copy_(view, t);
  return view;
}

Tensor with_offset(const Tensor& t) {
  Dims larger = t.shape();
  for (int64_t& size : larger) size += 3;
  Tensor whole = surroundings(larger, t.dtype());
  Layout layout = whole.layout();
  for (int i = 0; i < t.rank(); ++i) layout = layout.narrow(i, 2, t.shape()[i]);
  copy_(alias(whole, layout), t);
  return alias(whole, layout);
}

Tensor with_step(const Tensor& t) {
  if (t.rank() == 0) return t;
  Dims larger = t.shape();
  larger[t.rank() - 1] *= 2;
  Tensor whole = surroundings(larger, t.dtype());
  Layout layout = whole.layout().narrow(t.rank() - 1, 0, t.shape().back(), 2);
  copy_(alias(whole, layout), t);
  return alias(whole, layout);
}

/// Every row of the first (last) axis is the first one, by stride 0.
Tensor repeated(const Tensor& t, int axis) {
  if (t.rank() == 0 || t.numel() == 0) return t;
  return alias(t, t.layout().narrow(axis, 0, 1).broadcast_to(t.shape()));
}

constexpr Variant kVariants[] = {
    {"transposed", transposed},
    {"offset", with_offset},
    {"step 2", with_step},
    {"first axis repeated", [](const Tensor& t) { return repeated(t, 0); }},
    {"last axis repeated", [](const Tensor& t) { return repeated(t, t.rank() - 1); }},
};

}  // namespace

TEST_P(OpCaseTest, Layouts) {
  const OpCase& row = GetParam();
  for (const Variant& variant : kVariants)
    for (size_t which = 0; which <= row.inputs.size(); ++which) {  // one input, or (last) all of them
      SCOPED_TRACE(
          fmt::format("{}, input {}", variant.name, which < row.inputs.size() ? std::to_string(which) : "all"));
      DType dtype = row.dtypes[0];
      std::vector<Tensor> inputs = make_inputs(row, row.shapes[0], dtype);
      for (size_t i = 0; i < inputs.size(); ++i)
        if (i == which || which == row.inputs.size()) inputs[i] = variant.make(inputs[i]);
      expect_reference(row, inputs, dtype, "result");
      std::vector<Tensor> dense;
      for (const Tensor& input : inputs) dense.push_back(clone_data(input));
      std::vector<Tensor> got = run_with_gradients(row, inputs), expected = run_with_gradients(row, dense);
      double tol = tolerance(row, dtype);
      for (size_t i = 1; i < got.size(); ++i)
        expect_close(to_array(got[i]), to_array(expected[i]), "gradient " + std::to_string(i),
                     [&](double r) { return 10 * tol * (1 + std::abs(r)); });
    }
}

TEST_P(OpCaseTest, Threads) {
  const OpCase& row = GetParam();
  const auto& shapes = row.large.empty() ? row.shapes[0] : row.large;
  int threads = num_threads();
  for (DType dtype : row.dtypes) {
    std::vector<Tensor> inputs = make_inputs(row, shapes, dtype);
    set_num_threads(1);
    std::vector<Tensor> one = run_with_gradients(row, inputs);
    set_num_threads(2);
    std::vector<Tensor> two = run_with_gradients(row, inputs);
    set_num_threads(threads);
    for (size_t i = 0; i < one.size(); ++i) {
      std::string what = fmt::format("{} {}", dtype_name(dtype), i ? "gradient" : "result");
      double tol = is_reduced(dtype) ? 2 * roundoff(dtype) : tolerance(row, dtype);
      expect_close(to_array(two[i]), to_array(one[i]), what, [&](double r) { return tol * (1 + std::abs(r)); });
      EXPECT_TRUE(!row.exact_threads || bits(one[i]) == bits(two[i])) << what;
    }
  }
}

}  // namespace strata
