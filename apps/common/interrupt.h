// Ctrl-C ends a run cleanly: the first SIGINT or SIGTERM sets a flag that the loop asks for after each step, so that it
// saves a checkpoint and ends; the second ends the process at once with exit code 130.
#pragma once

namespace strata::apps {

/// Installs the handlers while it lives. `note` is written to stderr at the first signal; it must outlive the guard.
class InterruptGuard {
 public:
  explicit InterruptGuard(const char* note = kNote);
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  ~InterruptGuard();

  static constexpr const char* kNote = "\ninterrupted: saving after this step; press Ctrl-C again to stop at once\n";
};

/// True after the first signal.
bool interrupted();
/// Forgets the signal, so that the next one counts as the first again (a chat stops an answer and goes on).
void clear_interrupt();

}  // namespace strata::apps
