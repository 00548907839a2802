#include "nn/dropout.h"

namespace strata::nn {

Dropout::Dropout(double p) : p_(p) {
  check<UsageError>(p >= 0 && p < 1, "dropout: probability must be in [0, 1), got {}", p);
}

}  // namespace strata::nn
