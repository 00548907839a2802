#include "optim/training/step.h"

#include <cmath>

#include "autograd/autograd.h"
#include "autograd/ops/pointwise.h"
#include "optim/clip.h"

namespace strata::optim {

namespace {

// Runs the micro-batches again, every op checked, to say where the first NaN or infinity came from.
[[noreturn]] void explain_divergence(Optimizer& optimizer, const std::vector<MicroBatch>& micro_batches,
                                     const std::string& what) {
  optimizer.zero_grad();
  std::string origin = "no op reproduced it in a second, checked run";
  try {
    AnomalyMode anomaly;
    accumulate_gradients(micro_batches);
  } catch (const Error& e) {
    origin = e.what();
  }
  for (const NamedTensor& p : optimizer.parameters())
    if (!std::isfinite(grad_norm({p}))) {
      origin += "; first parameter with a non-finite gradient: " + p.name;
      break;
    }
  optimizer.zero_grad();
  fail<Diverged>("training: {}; {}. Lower the learning rate, add warm-up, or look at the records of this step", what,
                 origin);
}

}  // namespace

StepResult accumulate_gradients(const std::vector<MicroBatch>& micro_batches) {
  StepResult result;
  for (const MicroBatch& m : micro_batches) {
    check(m.counted >= 0, "training: counted tokens must be non-negative, got {}", m.counted);
    result.counted += m.counted;
  }
  result.skipped = result.counted == 0;
  if (result.skipped) return result;
  double share = 1.0 / static_cast<double>(result.counted);
  double sum = 0;
  for (const MicroBatch& m : micro_batches) {
    if (m.counted == 0) continue;
    Tensor loss = m.loss_sum();
    sum += loss.item();
    backward(loss * share);
  }
  result.loss = sum * share;
  return result;
}

StepResult train_step(Optimizer& optimizer, const std::vector<MicroBatch>& micro_batches, double max_norm) {
  optimizer.zero_grad();
  StepResult result = accumulate_gradients(micro_batches);
  if (result.skipped) return result;
  if (!std::isfinite(result.loss))
    explain_divergence(optimizer, micro_batches, fmt::format("the loss became {}", result.loss));
  result.grad_norm = grad_norm(optimizer.parameters());
  if (!std::isfinite(result.grad_norm))
    explain_divergence(optimizer, micro_batches, fmt::format("the gradient norm became {}", result.grad_norm));
  bool clip = max_norm > 0 && result.grad_norm > max_norm;
  optimizer.step(clip ? max_norm / result.grad_norm : 1.0);
  optimizer.zero_grad();
  return result;
}

}  // namespace strata::optim
