#include "tensor/kernel.h"

#include <gmock/gmock.h>

#include <set>

#include "tests/error_text.h"

namespace strata {
namespace {

// Registration happens in static initialisers: a library linked the wrong way loses them silently.
TEST(Kernel, EverySlotIsFilledOnTheCpu) {
  const std::vector<std::string>& names = registered_kernels(Device::Type::cpu);
  EXPECT_THAT(names, testing::IsSupersetOf({
                         "add",
                         "sub",
                         "mul",
                         "maximum",
                         "minimum",
                         "add_scalar",
                         "mul_scalar",
                         "equal",
                         "less",
                         "greater",
                         "where",
                         "div",
                         "pow",
                         "neg",
                         "abs",
                         "exp",
                         "log",
                         "sqrt",
                         "rsqrt",
                         "sin",
                         "cos",
                         "erf",
                         "tanh",
                         "sigmoid",
                         "relu",
                         "silu",
                         "gelu",
                         "gelu_tanh",
                         "swiglu",
                         "tanh_backward",
                         "sigmoid_backward",
                         "relu_backward",
                         "silu_backward",
                         "gelu_backward",
                         "gelu_tanh_backward",
                         "swiglu_backward",  // pointwise
                         "sum",
                         "max",
                         "all_finite",  // reduce
                         "copy",
                         "fill",  // copy
                         "first_outside",
                         "index_select",
                         "index_add",
                         "gather",
                         "scatter_add",  // index
                         "dropout",      // dropout
                     }));
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size()) << "a slot is filled twice";
}

void twice(int& x) {
  x *= 2;
}

TEST(Kernel, AnEmptySlotNamesOperationAndDevice) {
  Kernel<void(int&)> slot{"twice"};
  int x = 4;
  EXPECT_EQ(error_text([&] { slot(Device::cpu(), x); }), "twice: no kernel for cpu");
  slot.set(Device::Type::cpu, twice);
  slot(Device::cpu(), x);
  EXPECT_EQ(x, 8);
  EXPECT_TRUE(slot.has(Device::cpu()));
  EXPECT_EQ(error_text([&] { slot(Device::cuda(0), x); }), "twice: no kernel for cuda:0");
}

}  // namespace
}  // namespace strata
