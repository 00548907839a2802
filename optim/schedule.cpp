#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tensor/error.h"

namespace strata::optim {

namespace {

// fall(p) for progress p in (0, 1] after the warm-up.
template <class F>
double rate(int64_t step, const ScheduleOptions& o, F&& fall) {
  check(step >= 1, "schedule: steps count from 1, got {}", step);
  if (step <= o.warmup) return o.peak * static_cast<double>(step) / static_cast<double>(o.warmup);
  double span = static_cast<double>(std::max<int64_t>(o.total - o.warmup, 1));
  double progress = std::min(1.0, static_cast<double>(step - o.warmup) / span);
  return o.peak * (o.final_fraction + (1 - o.final_fraction) * fall(progress));
}

}  // namespace

double cosine(int64_t step, const ScheduleOptions& options) {
  return rate(step, options, [](double p) { return 0.5 * (1 + std::cos(std::numbers::pi * p)); });
}

double linear(int64_t step, const ScheduleOptions& options) {
  return rate(step, options, [](double p) { return 1 - p; });
}

double constant(int64_t step, const ScheduleOptions& options) {
  return rate(step, options, [](double) { return 1.0; });
}

Schedule schedule_named(const std::string& name) {
  if (name == "cosine") return cosine;
  if (name == "linear") return linear;
  if (name == "constant") return constant;
  fail<UsageError>("schedule: expected cosine, linear or constant, got '{}'", name);
}

}  // namespace strata::optim
