#include "tensor/strided.h"

#include <gtest/gtest.h>

#include <mutex>
#include <numeric>
#include <set>

namespace strata {
namespace {

TEST(StridedLoop, MergesAxesThatLieTogether) {
  StridedLoop<1> dense({2, 3, 4}, {Dims{12, 4, 1}});
  EXPECT_EQ(dense.shape, (Dims{24}));
  EXPECT_EQ(dense.strides[0], (Dims{1}));
  StridedLoop<2> rows({2, 3, 4}, {Dims{12, 4, 1}, Dims{0, 4, 1}});
  EXPECT_EQ(rows.shape, (Dims{2, 12}));
  EXPECT_EQ(rows.strides[1], (Dims{0, 1}));
  StridedLoop<1> ones({1, 1}, {Dims{77, 5}});
  EXPECT_EQ(ones.shape, (Dims{1}));
  StridedLoop<1> scalar({}, {Dims{}});
  EXPECT_EQ(scalar.shape, (Dims{1}));
}

/// Both operands' positions of every element the loop visits.
std::multiset<std::pair<int64_t, int64_t>> visited(const Dims& shape, const Dims& a, const Dims& b, int64_t grain) {
  std::multiset<std::pair<int64_t, int64_t>> seen;
  std::mutex mutex;
  StridedLoop<2> loop(shape, {a, b});
  loop.for_each_row(
      [&](const std::array<int64_t, 2>& at, int64_t n, const std::array<int64_t, 2>& step) {
        std::lock_guard lock(mutex);
        for (int64_t i = 0; i < n; ++i) seen.emplace(at[0] + i * step[0], at[1] + i * step[1]);
      },
      grain);
  return seen;
}

TEST(StridedLoop, VisitsEveryElementOnceWhateverTheGrain) {
  struct Case {
    Dims shape, a, b;
  };
  const Case cases[] = {{{4, 5, 6}, {30, 6, 1}, {1, 4, 20}},        {{4, 5, 6}, {30, 6, 1}, {0, 1, 0}}, {{7}, {3}, {0}},
                        {{2, 1, 5, 1}, {5, 9, 1, 9}, {1, 9, 2, 9}}, {{3, 0, 2}, {2, 2, 1}, {2, 2, 1}},  {{}, {}, {}}};
  int threads = num_threads();
  for (const Case& c : cases)
    for (int count : {1, 2, 3})
      for (int64_t grain : {1, 7, 100000}) {
        set_num_threads(count);
        std::multiset<std::pair<int64_t, int64_t>> expected;
        for (int64_t i = 0; i < numel(c.shape); ++i) {
          int64_t rest = i, pa = 0, pb = 0;
          for (int k = c.shape.size() - 1; k >= 0; --k) {
            pa += rest % c.shape[k] * c.a[k];
            pb += rest % c.shape[k] * c.b[k];
            rest /= c.shape[k];
          }
          expected.emplace(pa, pb);
        }
        EXPECT_EQ(visited(c.shape, c.a, c.b, grain), expected) << to_string(c.shape) << " grain " << grain;
      }
  set_num_threads(threads);
}

TEST(Parallel, PartsCoverTheRangeAndErrorsReachTheCaller) {
  int threads = num_threads();
  set_num_threads(2);
  std::vector<int> hits(1000, 0);
  parallel_for(1000, 10, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
  });
  EXPECT_EQ(std::accumulate(hits.begin(), hits.end(), 0), 1000);
  EXPECT_EQ(*std::max_element(hits.begin(), hits.end()), 1);
  parallel_items(1000, [&](int64_t i) { ++hits[static_cast<size_t>(i)]; });
  EXPECT_EQ(*std::min_element(hits.begin(), hits.end()), 2);
  EXPECT_THROW(parallel_for(100, 1, [](int64_t, int64_t) { fail("parallel: on purpose"); }), Error);
  parallel_for(0, 1, [](int64_t, int64_t) { FAIL() << "nothing to do"; });
  set_num_threads(threads);
  EXPECT_THROW(set_num_threads(0), UsageError);
}

}  // namespace
}  // namespace strata
