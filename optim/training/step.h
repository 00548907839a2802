// One optimizer step over several micro-batches: the loss is the mean over all counted tokens of the step, so that
// unequal micro-batches give exactly the gradient of one big batch.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "optim/optimizer.h"

namespace strata::optim {

/// A part of a step: a function that computes the SUM of the losses of its counted tokens (or examples), a scalar.
struct MicroBatch {
  std::function<Tensor()> loss_sum;
  int64_t counted = 0;
};

struct StepResult {
  double loss = 0;       // mean over counted tokens; meaningless if skipped
  double grad_norm = 0;  // before clipping
  int64_t counted = 0;
  bool skipped = false;  // nothing counted: parameters, moments and step count are untouched
};

/// Training met NaN or infinity. The text names the op and module where it first appeared.
class Diverged : public Error {
 public:
  using Error::Error;
};

/// Runs backward for each micro-batch with 1 / (counted tokens of the whole step), clips to max_norm (0: no clipping)
/// and updates. Gradients are zero before and after. Throws Diverged, with parameters and moments untouched, if the
/// loss or the gradient is not finite.
StepResult train_step(Optimizer& optimizer, const std::vector<MicroBatch>& micro_batches, double max_norm);

/// The gradients of a step alone (no update): mean loss, gradients left on the parameters.
StepResult accumulate_gradients(const std::vector<MicroBatch>& micro_batches);

}  // namespace strata::optim
