// sum: one plan for every shape. The axis of x with the smallest stride is walked innermost. If it is reduced, each
// output adds up runs ("rows" below); if it is kept, rows are added to each other column by column. Long sums are cut
// into pieces whose size depends on the shape alone, so the bits do not depend on the number of threads.
#include "tensor/kernels/reduce.h"

#include <atomic>
#include <cmath>
#include <limits>
#include <vector>

#include "tensor/strided.h"

namespace strata {
namespace {

constexpr int64_t kPiece = 16384;       // elements one piece adds up, about
constexpr int64_t kRowsPerPiece = 128;  // rows one piece adds up, column by column,
constexpr int64_t kRowsInTurn = 16;     // so many one after the other
constexpr int64_t kColumnTile = 1024;

template <class T>
using accumulate_t = std::conditional_t<std::is_integral_v<T>, int64_t, compute_t<T>>;

/// A list of axes walked together: x's strides, and (for kept axes) y's.
struct Axes {
  Dims shape, x, y;
  int64_t count() const { return numel(shape); }
  void push(int64_t size, int64_t x_stride, int64_t y_stride) {
    int last = shape.size() - 1;
    if (last >= 0 && x[last] == x_stride * size && y[last] == y_stride * size) {
      shape[last] *= size;
      x[last] = x_stride;
      y[last] = y_stride;
      return;
    }
    shape.push_back(size);
    x.push_back(x_stride);
    y.push_back(y_stride);
  }
  int64_t offset(int64_t index, const Dims& strides) const {
    int64_t at = 0;
    for (int i = shape.size() - 1; i >= 0; --i) {
      at += index % shape[i] * strides[i];
      index /= shape[i];
    }
    return at;
  }
  int64_t x_at(int64_t index) const { return offset(index, x); }
  int64_t y_at(int64_t index) const { return offset(index, y); }
};

/// kept x reduced axes; the one with the smallest stride of x taken out as the inner axis.
struct Plan {
  Axes kept, reduced;
  bool inner_is_reduced = true;
  int64_t length = 1, x_step = 1, y_step = 1;  // of the inner axis

  Plan(const Tensor& x, const Tensor& y) {
    for (int i = 0; i < x.rank(); ++i) {
      if (x.shape()[i] == 1) continue;
      if (y.shape()[i] == 1)
        reduced.push(x.shape()[i], x.strides()[i], 0);
      else
        kept.push(x.shape()[i], x.strides()[i], y.strides()[i]);
    }
    int k = smallest(kept), r = smallest(reduced);
    inner_is_reduced = k < 0 || (r >= 0 && reduced.x[r] <= kept.x[k]);
    Axes& from = inner_is_reduced ? reduced : kept;
    int axis = inner_is_reduced ? r : k;
    if (axis < 0) return;
    length = from.shape[axis];
    x_step = from.x[axis];
    y_step = from.y[axis];
    from.shape.erase(axis);
    from.x.erase(axis);
    from.y.erase(axis);
  }

  static int smallest(const Axes& axes) {
    int best = -1;
    for (int i = 0; i < axes.shape.size(); ++i)
      if (best < 0 || axes.x[i] <= axes.x[best]) best = i;
    return best;
  }
};

/// Pairwise sum of n elements; 32 running sums at the bottom, which the compiler keeps in vector registers.
template <class T>
accumulate_t<T> sum_run(const T* x, int64_t n, int64_t step) {
  using A = accumulate_t<T>;
  constexpr int64_t kLanes = 32;
  if (n > 16 * kLanes) {
    int64_t half = n / (2 * kLanes) * kLanes;
    return sum_run(x, half, step) + sum_run(x + half * step, n - half, step);
  }
  A lane[kLanes] = {};
  int64_t i = 0;
  if (step == 1) {
    for (; i + kLanes <= n; i += kLanes)
      for (int64_t k = 0; k < kLanes; ++k) lane[k] += convert<A>(x[i + k]);
  } else {
    for (; i + kLanes <= n; i += kLanes)
      for (int64_t k = 0; k < kLanes; ++k) lane[k] += convert<A>(x[(i + k) * step]);
  }
  for (int64_t k = 0; i < n; ++i, ++k) lane[k] += convert<A>(x[i * step]);
  for (int64_t width = kLanes / 2; width > 0; width /= 2)
    for (int64_t k = 0; k < width; ++k) lane[k] += lane[k + width];
  return lane[0];
}

/// Pairwise sum of row(first) .. row(last - 1).
template <class A, class F>
A sum_pairwise(int64_t first, int64_t last, const F& row) {
  if (last - first == 1) return row(first);
  int64_t middle = first + (last - first) / 2;
  return sum_pairwise<A>(first, middle, row) + sum_pairwise<A>(middle, last, row);
}

// The inner axis is reduced: every output is the sum of `reduced.count()` runs of `length`.
template <class T, class Y>
void sum_rows(const Plan& plan, const T* x, Y* y) {
  using A = accumulate_t<T>;
  int64_t outputs = plan.kept.count(), runs = plan.reduced.count();
  int64_t pieces_per_run = (plan.length + kPiece - 1) / kPiece;
  int64_t runs_per_piece = std::max<int64_t>(1, kPiece / plan.length);
  int64_t pieces = pieces_per_run > 1 ? runs * pieces_per_run : (runs + runs_per_piece - 1) / runs_per_piece;
  auto piece_sum = [&](int64_t output, int64_t piece) {
    const T* from = x + plan.kept.x_at(output);
    if (pieces_per_run > 1) {
      int64_t begin = piece % pieces_per_run * kPiece;
      return sum_run(from + plan.reduced.x_at(piece / pieces_per_run) + begin * plan.x_step,
                     std::min(kPiece, plan.length - begin), plan.x_step);
    }
    int64_t last = std::min(runs, (piece + 1) * runs_per_piece);
    return sum_pairwise<A>(piece * runs_per_piece, last,
                           [&](int64_t r) { return sum_run(from + plan.reduced.x_at(r), plan.length, plan.x_step); });
  };
  if (pieces == 1) {
    parallel_for(outputs, std::max<int64_t>(1, kPiece / (plan.length * runs)), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) y[plan.kept.y_at(o)] = convert<Y>(piece_sum(o, 0));
    });
    return;
  }
  std::vector<A> partial(static_cast<size_t>(outputs * pieces));
  parallel_for(outputs * pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) partial[static_cast<size_t>(i)] = piece_sum(i / pieces, i % pieces);
  });
  for (int64_t o = 0; o < outputs; ++o)
    y[plan.kept.y_at(o)] =
        convert<Y>(sum_pairwise<A>(0, pieces, [&](int64_t p) { return partial[static_cast<size_t>(o * pieces + p)]; }));
}

/// sum[c] += x[c] for rows [first, last), one after the other.
template <class T>
void add_rows(const Plan& plan, const T* x, int64_t first, int64_t last, int64_t columns, accumulate_t<T>* sum) {
  using A = accumulate_t<T>;
  for (int64_t r = first; r < last; ++r) {
    const T* row = x + plan.reduced.x_at(r);
    if (plan.x_step == 1) {
      for (int64_t c = 0; c < columns; ++c) sum[c] += convert<A>(row[c]);
    } else {
      for (int64_t c = 0; c < columns; ++c) sum[c] += convert<A>(row[c * plan.x_step]);
    }
  }
}

/// One piece: sum[c], 0 before, becomes the sum over rows [first, last). Groups of a few rows are added up by
/// themselves first: rounding errors grow with the length of a chain.
template <class T>
void add_piece(const Plan& plan, const T* x, int64_t first, int64_t last, int64_t columns, accumulate_t<T>* sum) {
  using A = accumulate_t<T>;
  add_rows(plan, x, first, std::min(last, first + kRowsInTurn), columns, sum);
  A group[kColumnTile];
  for (int64_t r = first + kRowsInTurn; r < last; r += kRowsInTurn) {
    std::fill(group, group + columns, A(0));
    add_rows(plan, x, r, std::min(last, r + kRowsInTurn), columns, group);
    for (int64_t c = 0; c < columns; ++c) sum[c] += group[c];
  }
}

/// Adds pieces [first, last) (each `columns` wide) into the first of them, pairwise.
template <class A>
void fold_pieces(A* pieces, int64_t first, int64_t last, int64_t columns) {
  if (last - first == 1) return;
  int64_t middle = first + (last - first) / 2;
  fold_pieces(pieces, first, middle, columns);
  fold_pieces(pieces, middle, last, columns);
  A* to = pieces + first * columns;
  const A* from = pieces + middle * columns;
  for (int64_t c = 0; c < columns; ++c) to[c] += from[c];
}

// The inner axis is kept: rows are added up in tiles of columns.
template <class T, class Y>
void sum_columns(const Plan& plan, const T* x, Y* y) {
  using A = accumulate_t<T>;
  int64_t outer = plan.kept.count(), rows = plan.reduced.count();
  int64_t tiles = (plan.length + kColumnTile - 1) / kColumnTile;
  int64_t pieces = (rows + kRowsPerPiece - 1) / kRowsPerPiece;
  int64_t tile_width = std::min(plan.length, kColumnTile);
  std::vector<A> partial(static_cast<size_t>(outer * tiles * pieces * tile_width));
  int64_t grain = std::max<int64_t>(1, kPiece / (std::min(rows, kRowsPerPiece) * tile_width));
  parallel_for(outer * tiles * pieces, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t piece = i % pieces, column = i / pieces % tiles * kColumnTile;
      add_piece(plan, x + plan.kept.x_at(i / pieces / tiles) + column * plan.x_step, piece * kRowsPerPiece,
                std::min(rows, (piece + 1) * kRowsPerPiece), std::min(kColumnTile, plan.length - column),
                partial.data() + i * tile_width);
    }
  });
  parallel_for(outer * tiles, std::max<int64_t>(1, kPiece / (pieces * tile_width)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      A* sums = partial.data() + i * pieces * tile_width;
      fold_pieces(sums, 0, pieces, tile_width);
      int64_t column = i % tiles * kColumnTile;
      Y* to = y + plan.kept.y_at(i / tiles) + column * plan.y_step;
      int64_t columns = std::min(kColumnTile, plan.length - column);
      for (int64_t c = 0; c < columns; ++c) to[c * plan.y_step] = convert<Y>(sums[c]);
    }
  });
}

void sum_cpu(const Tensor& x, const Tensor& y) {
  if (y.numel() == 0) return;
  with_dtype(x.dtype(), "sum", [&]<class T>() {
    using Y = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
    Y* to = y.mutable_data<Y>();
    if (x.numel() == 0) {
      std::fill(to, to + y.numel(), convert<Y>(0));
      return;
    }
    Plan plan(x, y);
    if (plan.inner_is_reduced)
      sum_rows<T>(plan, x.data<T>(), to);
    else
      sum_columns<T>(plan, x.data<T>(), to);
  });
}

/// Position of the first greatest of n elements; the first NaN counts as greatest.
template <class T>
int64_t first_greatest(const T* x, int64_t n, int64_t step) {
  using C = compute_t<T>;
  C best = convert<C>(x[0]);
  int64_t at = 0;
  for (int64_t i = 1; i < n && best == best; ++i) {
    C value = convert<C>(x[i * step]);
    if (value > best || value != value) {
      best = value;
      at = i;
    }
  }
  return at;
}

void max_cpu(const Tensor& x, int axis, const Tensor& values, const Tensor& indices) {
  const Tensor& y = values ? values : indices;
  if (y.numel() == 0) return;
  int64_t n = x.shape()[axis], step = x.strides()[axis];
  Axes outputs;
  for (int i = 0; i < x.rank(); ++i)
    if (i != axis && x.shape()[i] != 1) outputs.push(x.shape()[i], x.strides()[i], y.strides()[i]);
  with_dtype(x.dtype(), "max", [&]<class T>() {
    const T* from = x.data<T>();
    T* to = values ? values.mutable_data<T>() : nullptr;
    int64_t* index = indices ? indices.mutable_data<int64_t>() : nullptr;
    parallel_for(outputs.count(), std::max<int64_t>(1, kPiece / n), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        const T* run = from + outputs.x_at(o);
        int64_t best = first_greatest(run, n, step), at = outputs.y_at(o);
        if (to) to[at] = run[best * step];
        if (index) index[at] = best;
      }
    });
  });
}

void all_finite_cpu(const Tensor& x, bool& finite) {
  std::atomic<bool> good{true};
  with_float(x.dtype(), "all_finite", [&]<class T>() {
    const T* from = x.data<T>();
    StridedLoop<1> loop(x.shape(), {x.strides()});
    loop.for_each_row([&](const std::array<int64_t, 1>& at, int64_t n, const std::array<int64_t, 1>& step) {
      using C = compute_t<T>;
      int bad = 0;
      for (int64_t i = 0; i < n; ++i)
        bad |= !(std::abs(convert<C>(from[at[0] + i * step[0]])) <= std::numeric_limits<C>::max());
      if (bad) good.store(false, std::memory_order_relaxed);
    });
  });
  finite = good;
}

constexpr auto kCpu = Device::Type::cpu;
Register registered[] = {
    {kernels::sum, kCpu, sum_cpu}, {kernels::max, kCpu, max_cpu}, {kernels::all_finite, kCpu, all_finite_cpu}};

}  // namespace
}  // namespace strata
