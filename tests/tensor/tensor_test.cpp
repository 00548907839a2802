// The tensor handle, its storage, the ledger and the allocator.
#include "tensor/tensor.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tensor/allocator.h"
#include "tensor/create.h"
#include "tests/error_text.h"

namespace strata {
namespace {

TEST(Tensor, HandlesShareTheObject) {
  Tensor a = zeros({2, 3}), b = a;
  EXPECT_TRUE(a.same_as(b));
  EXPECT_FALSE(alias(a).same_as(a));
  EXPECT_EQ(alias(a).storage(), a.storage());
  EXPECT_FALSE(a.is_sole_owner());
  b = Tensor();
  EXPECT_TRUE(a.is_sole_owner());
  Tensor view = alias(a);
  EXPECT_FALSE(a.is_sole_owner());  // somebody else sees the bytes
}

TEST(Tensor, UndefinedTensorsSayWhatIsWrong) {
  Tensor t;
  EXPECT_FALSE(t.defined());
  EXPECT_EQ(error_text([&] { t.shape(); }), "tensor: undefined tensor used");
  EXPECT_EQ(error_text([&] { t.data<float>(); }), "tensor: undefined tensor used");
}

TEST(Tensor, AccessorsCheckTheType) {
  Tensor t = zeros({2});
  EXPECT_EQ(error_text([&] { t.data<double>(); }), "data: expected element type f64, got f32");
  EXPECT_EQ(error_text([&] { t.item(); }), "item: expected one element, got shape [2]");
  EXPECT_EQ(error_text([&] { t.size(1); }), "size: axis must be in [-1, 1), got 1");
  EXPECT_EQ(full({1, 1}, 3, {DType::i8}).item(), 3);
}

TEST(Tensor, LayoutsStayInsideTheStorage) {
  Tensor t = zeros({6});
  EXPECT_EQ(error_text([&] { alias(t, Layout{{2, 3}, {3, 1}, 0}); }), "no error");
  EXPECT_EQ(error_text([&] {
              alias(t, Layout{{2, 3}, {3, 1}, 1});
            }),
            "tensor: layout [2, 3] with strides [3, 1] leaves its storage");
  EXPECT_EQ(error_text([&] { alias(t, Layout{{0, 3}, {3, 1}, 0}); }), "no error");
}

TEST(Tensor, WritingCountsAVersion) {
  Tensor t = zeros({4});
  uint32_t before = t.storage()->version();
  t.data<float>();
  EXPECT_EQ(t.storage()->version(), before);
  fill_(alias(t, t.layout().narrow(0, 1, 2)), 5);
  EXPECT_GT(t.storage()->version(), before);
  EXPECT_EQ(to_vector<double>(t), (std::vector<double>{0, 5, 5, 0}));
}

TEST(Tensor, BorrowedBytesAreReadOnlyAndKeepTheirOwner) {
  auto owner = std::make_shared<std::vector<float>>(std::vector<float>{1, 2, 3});
  std::weak_ptr<std::vector<float>> alive = owner;
  Tensor t(Storage::borrow(owner->data(), 12, owner), Layout::contiguous({3}), DType::f32);
  owner.reset();
  EXPECT_FALSE(alive.expired());
  EXPECT_EQ(to_vector<double>(t), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(error_text([&] { fill_(t, 0); }),
            "write: the tensor's bytes are a mapped file and read-only; clone() it first");
  t = Tensor();
  EXPECT_TRUE(alive.expired());
}

TEST(Tensor, NoDeviceWithoutCuda) {
  EXPECT_EQ(error_text([] {
              zeros({2}, {DType::f32, Device::cuda(1)});
            }),
            "allocate: this build has no device cuda:1; configure with -DSTRATA_CUDA=ON");
}

TEST(Create, ValuesAndTheirErrors) {
  EXPECT_EQ(to_vector<int64_t>(arange(4)), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(to_vector<double>(eye(2)), (std::vector<double>{1, 0, 0, 1}));
  EXPECT_EQ(scalar(2.5).rank(), 0);
  EXPECT_EQ(zeros_like(full({2, 2}, 1, {DType::u8})).dtype(), DType::u8);
  EXPECT_EQ(error_text([] { from_values<float>({1, 2, 3}, {2, 2}); }), "from_values: 3 values for shape [2, 2]");
  EXPECT_EQ(error_text([] { arange(-1); }), "arange: count must be non-negative, got -1");
  EXPECT_EQ(error_text([] { empty({int64_t{1} << 62}); }), "empty: too many bytes, shape [4611686018427387904]");
}

TEST(Create, CopyConvertsAndBroadcasts) {
  Tensor to = zeros({2, 3}, {DType::i32});
  copy_(to, from_values({1.9, -2.9, 3.0}, {3}));
  EXPECT_EQ(to_vector<int64_t>(to), (std::vector<int64_t>{1, -2, 3, 1, -2, 3}));
  Tensor turned = alias(to, to.layout().transpose(0, 1));
  EXPECT_EQ(to_vector<int64_t>(clone_data(turned)), (std::vector<int64_t>{1, 1, -2, -2, 3, 3}));
  EXPECT_EQ(error_text([&] { copy_(to, zeros({2})); }), "broadcast: [2] does not broadcast to [2, 3]");
}

TEST(Create, TextShortensLongAxes) {
  EXPECT_EQ(to_string(from_values<int32_t>({1, 2, 3, 4}, {2, 2})), "i32[2, 2] [[1, 2], [3, 4]]");
  EXPECT_EQ(to_string(arange(9)), "i64[9] [0, 1, 2, ..., 6, 7, 8]");
  EXPECT_EQ(to_string(scalar(0.5)), "f32[] 0.5");
  EXPECT_EQ(to_string(zeros({0, 2})), "f32[0, 2] []");
}

TEST(Ledger, CountsByKindAndKeepsThePeak) {
  MemoryUse before = ledger::current();
  auto grown = [&](MemoryKind kind) { return ledger::current()[kind] - before[kind]; };
  Tensor plain = zeros({1000});
  EXPECT_EQ(grown(MemoryKind::workspace), 4000);
  {
    MemoryKindScope scope(MemoryKind::parameter);
    Tensor parameter = zeros({500});
    EXPECT_EQ(grown(MemoryKind::parameter), 2000);
    parameter.storage()->set_kind(MemoryKind::gradient);
    EXPECT_EQ(grown(MemoryKind::parameter), 0);
    EXPECT_EQ(grown(MemoryKind::gradient), 2000);
  }
  EXPECT_EQ(grown(MemoryKind::gradient), 0);
  ledger::reset_peak();
  { Tensor large = zeros({1 << 20}); }
  EXPECT_EQ(ledger::at_peak().total() - ledger::current().total(), 4 << 20);
  EXPECT_EQ(ledger::peak_by_kind()[MemoryKind::workspace] - ledger::current()[MemoryKind::workspace], 4 << 20);
  EXPECT_THAT(ledger::table(), testing::HasSubstr("workspace"));
}

TEST(Ledger, ViewsCostNothingAndMappedBytesStayOutOfTheTotal) {
  Tensor t = zeros({100});
  int64_t before = ledger::current().total();
  Tensor view = alias(t, t.layout().narrow(0, 0, 50));
  auto owner = std::make_shared<int>(0);
  auto mapped = Storage::borrow(owner.get(), 4, owner);
  EXPECT_EQ(ledger::current().total(), before);
  EXPECT_EQ(ledger::current()[MemoryKind::mapped], 4);
}

TEST(Ledger, SavedForBackwardCountsAsActivation) {
  MemoryUse before = ledger::current();
  Tensor t = zeros({100});
  t.storage()->retain_for_backward();
  t.storage()->retain_for_backward();
  EXPECT_EQ(ledger::current()[MemoryKind::activation] - before[MemoryKind::activation], 400);
  t.storage()->release_from_backward();
  EXPECT_EQ(ledger::current()[MemoryKind::activation] - before[MemoryKind::activation], 400);
  t.storage()->release_from_backward();
  EXPECT_EQ(ledger::current()[MemoryKind::activation], before[MemoryKind::activation]);
}

TEST(Allocator, PoisonIsNaNInEveryFloatType) {
  allocator::set_poison(true);
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16})
    for (double v : to_vector<double>(empty({33}, {dtype}))) EXPECT_TRUE(std::isnan(v)) << dtype_name(dtype);
  Tensor large = empty({1 << 18});
  fill_(large, 1);
  large = Tensor();  // the block may come back: poisoned again
  for (float v : to_vector<float>(empty({1 << 18}))) ASSERT_TRUE(std::isnan(v));
  allocator::set_poison(false);
}

TEST(Allocator, LimitEndsInAnErrorWithTheLedger) {
  allocator::set_limit(32 << 20);
  std::string text = error_text([] { zeros({16 << 20}); });
  allocator::set_limit(0);
  EXPECT_THAT(text, testing::StartsWith("out of memory: cannot allocate 64.0 MiB\nmemory on cpu"));
  EXPECT_THAT(text, testing::HasSubstr("ways out, in order"));
  EXPECT_THROW(zeros({int64_t{1} << 50}), OutOfMemory);
  EXPECT_EQ(zeros({16 << 20}).numel(), 16 << 20);
}

TEST(Allocator, LargeBlocksAreKeptForReuseAndGivenBack) {
  allocator::trim();
  EXPECT_EQ(allocator::cached_bytes(), 0);
  { Tensor t = zeros({1 << 20}); }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_EQ(allocator::cached_bytes(), 4 << 20);
#endif
  allocator::trim();
  EXPECT_EQ(allocator::cached_bytes(), 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(empty({3}).raw_data()) % 64, 0u);
}

}  // namespace
}  // namespace strata
