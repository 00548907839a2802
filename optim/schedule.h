// Learning-rate schedules as plain functions of the optimizer step (never of micro-batches).
#pragma once

#include <cstdint>
#include <string>

namespace strata::optim {

struct ScheduleOptions {
  double peak = 1e-3;
  double final_fraction = 0;  // rate at the last step, as a fraction of the peak
  int64_t warmup = 0;         // steps of linear rise
  int64_t total = 1;          // optimizer steps of the whole run
};

/// Rate of step s in [1, total]. s <= warmup: peak * s / warmup, so that step `warmup` has exactly the peak. After that
/// it falls to exactly final_fraction * peak at step `total`: along half a cosine, a line, or not at all.
double cosine(int64_t step, const ScheduleOptions& options);
double linear(int64_t step, const ScheduleOptions& options);
double constant(int64_t step, const ScheduleOptions& options);

using Schedule = double (*)(int64_t, const ScheduleOptions&);
/// By name ("cosine", "linear", "constant"); UsageError otherwise.
Schedule schedule_named(const std::string& name);

}  // namespace strata::optim
