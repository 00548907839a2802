#include "tensor/layout.h"

#include <gtest/gtest.h>

#include "tests/error_text.h"

namespace strata {
namespace {

TEST(Layout, ContiguousStrides) {
  EXPECT_EQ(Layout::contiguous({2, 3, 4}).strides, (Dims{12, 4, 1}));
  EXPECT_EQ(Layout::contiguous({}).numel(), 1);
  EXPECT_EQ(Layout::contiguous({2, 0, 4}).strides, (Dims{4, 4, 1}));
  EXPECT_EQ(Layout::contiguous({2, 0, 4}).numel(), 0);
}

TEST(Layout, IsContiguousIgnoresStridesOfSizeOne) {
  EXPECT_TRUE((Layout{{3, 1, 4}, {4, 999, 1}, 7}).is_contiguous());
  EXPECT_TRUE((Layout{{1}, {5}, 0}).is_contiguous());
  EXPECT_TRUE((Layout{{0, 3}, {1, 17}, 0}).is_contiguous());
  EXPECT_FALSE((Layout{{3, 4}, {1, 3}, 0}).is_contiguous());
  EXPECT_FALSE((Layout{{2, 3}, {0, 1}, 0}).is_contiguous());
}

TEST(Layout, TransposeAndPermute) {
  Layout x = Layout::contiguous({2, 3, 4});
  EXPECT_EQ(x.transpose(0, 2), (Layout{{4, 3, 2}, {1, 4, 12}, 0}));
  EXPECT_EQ(x.permute({2, 0, 1}), (Layout{{4, 2, 3}, {1, 12, 4}, 0}));
  EXPECT_EQ(x.permute({-1, 0, -2}), x.permute({2, 0, 1}));
  EXPECT_EQ(error_text([&] { x.permute({0, 1}); }), "permute: expected 3 axes, got [0, 1]");
  EXPECT_EQ(error_text([&] { x.permute({0, 1, 1}); }), "permute: axes must be distinct, got [0, 1, 1]");
}

TEST(Layout, NarrowBounds) {
  Layout x = Layout::contiguous({4, 10});
  EXPECT_EQ(x.narrow(1, 3, 4), (Layout{{4, 4}, {10, 1}, 3}));
  EXPECT_EQ(x.narrow(1, 1, 3, 4), (Layout{{4, 3}, {10, 4}, 1}));  // 1, 5, 9
  EXPECT_EQ(x.narrow(0, 2, 2), (Layout{{2, 10}, {10, 1}, 20}));
  EXPECT_EQ(x.narrow(0, 4, 0).numel(), 0);
  auto text = [&](int64_t start, int64_t length, int64_t step) {
    return error_text([&] { x.narrow(1, start, length, step); });
  };
  EXPECT_EQ(text(0, 4, 3), "no error");  // 0, 3, 6, 9
  EXPECT_EQ(text(1, 4, 3), "narrow: [1, +4 by 3) must lie in axis 1 of [4, 10]");
  EXPECT_EQ(text(0, 11, 1), "narrow: [0, +11 by 1) must lie in axis 1 of [4, 10]");
  EXPECT_EQ(text(-1, 2, 1), "narrow: [-1, +2 by 1) must lie in axis 1 of [4, 10]");
  EXPECT_EQ(text(11, 0, 1), "narrow: [11, +0 by 1) must lie in axis 1 of [4, 10]");
  EXPECT_EQ(text(0, -1, 1), "narrow: [0, +-1 by 1) must lie in axis 1 of [4, 10]");
  EXPECT_EQ(text(0, 3, INT64_MAX), "narrow: [0, +3 by 9223372036854775807) must lie in axis 1 of [4, 10]");
  EXPECT_EQ(text(0, 2, 0), "narrow: step must be positive, got 0");
}

TEST(Layout, SelectDropsTheAxis) {
  EXPECT_EQ(Layout::contiguous({4, 5, 6}).select(1, 3), (Layout{{4, 6}, {30, 1}, 18}));
  EXPECT_EQ(error_text([] { Layout::contiguous({4, 5}).select(1, 5); }), "select: index must be in [0, 5), got 5");
  EXPECT_EQ(error_text([] { Layout::contiguous({4, 5}).select(0, -1); }), "select: index must be in [0, 4), got -1");
}

TEST(Layout, Broadcast) {
  Layout row = Layout::contiguous({3, 1});
  EXPECT_EQ(row.broadcast_to({2, 3, 4}), (Layout{{2, 3, 4}, {0, 1, 0}, 0}));
  EXPECT_EQ(Layout::contiguous({}).broadcast_to({0, 2}), (Layout{{0, 2}, {0, 0}, 0}));
  EXPECT_EQ(error_text([&] { row.broadcast_to({3}); }), "broadcast: [3, 1] does not broadcast to [3]");
  EXPECT_EQ(error_text([&] { row.broadcast_to({4, 4}); }), "broadcast: [3, 1] does not broadcast to [4, 4]");
}

TEST(Layout, BroadcastShapes) {
  EXPECT_EQ(broadcast_shapes({2, 1, 4}, {3, 1}, "add"), (Dims{2, 3, 4}));
  EXPECT_EQ(broadcast_shapes({}, {5}, "add"), (Dims{5}));
  EXPECT_EQ(broadcast_shapes({1}, {0}, "add"), (Dims{0}));
  EXPECT_EQ(error_text([] {
              broadcast_shapes({2, 3}, {4}, "add");
            }),
            "add: shapes do not broadcast, got [2, 3] and [4]");
  EXPECT_EQ(error_text([] { broadcast_shapes({0}, {2}, "mul"); }), "mul: shapes do not broadcast, got [0] and [2]");
}

struct ReshapeCase {
  Layout from;
  Dims to;
  std::optional<Dims> strides;  // of the view; none: the elements would have to move
};

TEST(Layout, ReshapeWhereStridesAllowIt) {
  Layout x = Layout::contiguous({4, 6});
  const ReshapeCase cases[] = {
      {x, {24}, Dims{1}},
      {x, {2, 2, 3, 2}, Dims{12, 6, 2, 1}},
      {x.transpose(0, 1), {24}, std::nullopt},
      {x.transpose(0, 1), {6, 2, 2}, Dims{1, 12, 6}},
      {x.transpose(0, 1), {3, 2, 4}, Dims{2, 1, 6}},
      {x.transpose(0, 1), {12, 2}, std::nullopt},
      {x.narrow(1, 0, 3), {2, 2, 3}, Dims{12, 6, 1}},
      {x.narrow(1, 0, 3), {12}, std::nullopt},
      {x.narrow(1, 0, 3, 2), {12}, Dims{2}},  // every second of each row is every second of all
      {x.broadcast_to({5, 4, 6}), {5, 24}, Dims{0, 1}},
      {x.broadcast_to({5, 4, 6}), {20, 6}, std::nullopt},
      {Layout{{1}, {7}, 3}, {}, Dims{}},
  };
  for (const ReshapeCase& c : cases) {
    SCOPED_TRACE(to_string(c.from.shape) + to_string(c.from.strides) + " -> " + to_string(c.to));
    std::optional<Layout> view = c.from.reshape(c.to);
    EXPECT_EQ(view.has_value(), c.strides.has_value());
    if (!view || !c.strides) continue;
    EXPECT_EQ(view->strides, *c.strides);
    EXPECT_EQ(view->offset, c.from.offset);
  }
}

/// Storage positions in row-major order.
std::vector<int64_t> positions(const Layout& layout) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < layout.numel(); ++i) {
    int64_t rest = i, at = layout.offset;
    for (int k = layout.rank() - 1; k >= 0; --k) {
      at += rest % layout.shape[k] * layout.strides[k];
      rest /= layout.shape[k];
    }
    out.push_back(at);
  }
  return out;
}

// Every factorisation of 24 into up to four sizes, from every permutation and step of a [2, 3, 4] block: a view must
// list the same elements in the same order.
TEST(Layout, ReshapedViewsListTheSameElements) {
  std::vector<Dims> shapes;
  for (int64_t a = 1; a <= 24; ++a)
    for (int64_t b = 1; b <= 24; ++b)
      for (int64_t c = 1; c <= 24; ++c)
        if (24 % (a * b * c) == 0) shapes.push_back({a, b, c, 24 / (a * b * c)});
  Layout base = Layout::contiguous({2, 3, 8});
  int views = 0;
  for (const Dims& axes : {Dims{0, 1, 2}, Dims{0, 2, 1}, Dims{1, 0, 2}, Dims{1, 2, 0}, Dims{2, 0, 1}, Dims{2, 1, 0}})
    for (int64_t step : {1, 2}) {
      Layout from = base.narrow(2, 0, 4, step).permute(axes);
      for (const Dims& shape : shapes)
        if (std::optional<Layout> view = from.reshape(shape)) {
          ++views;
          EXPECT_EQ(positions(*view), positions(from)) << to_string(shape) << " from " << to_string(from.strides);
        }
    }
  EXPECT_GT(views, 100);
}

TEST(Layout, InferShape) {
  EXPECT_EQ(infer_shape({-1, 4}, 24, "reshape"), (Dims{6, 4}));
  EXPECT_EQ(infer_shape({0, 4}, 0, "reshape"), (Dims{0, 4}));
  EXPECT_EQ(infer_shape({-1, 4}, 0, "reshape"), (Dims{0, 4}));
  EXPECT_EQ(error_text([] { infer_shape({-1, 5}, 24, "reshape"); }), "reshape: 24 elements do not fit shape [-1, 5]");
  EXPECT_EQ(error_text([] { infer_shape({-1, 0}, 0, "reshape"); }), "reshape: 0 elements do not fit shape [-1, 0]");
  EXPECT_EQ(error_text([] { infer_shape({3, -2}, 6, "reshape"); }), "reshape: sizes must fit, got [3, -2]");
}

TEST(Dims, Limits) {
  EXPECT_EQ(error_text([] { Dims::filled(9, 1); }), "shape: at most 8 dimensions, got more");
  EXPECT_EQ(error_text([] {
              numel({int64_t{1} << 32, int64_t{1} << 32});
            }),
            "shape: too many elements, got [4294967296, 4294967296]");
  EXPECT_EQ(error_text([] { numel({2, -1}); }), "shape: sizes must be non-negative, got [2, -1]");
  EXPECT_EQ(error_text([] { normalize_axis(3, 3, "sum"); }), "sum: axis must be in [-3, 3), got 3");
  EXPECT_EQ(normalize_axis(-3, 3, "sum"), 0);
}

}  // namespace
}  // namespace strata
