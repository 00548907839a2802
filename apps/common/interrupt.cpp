#include "apps/common/interrupt.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "apps/common/command.h"
#include "tensor/error.h"

namespace strata::apps {

namespace {
std::atomic<bool> signalled{false};
std::atomic<const char*> first_note{nullptr};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<const char*>::is_always_lock_free);

constexpr std::array kSignals{SIGINT, SIGTERM};
std::array<struct sigaction, kSignals.size()> earlier_actions;

// Only async-signal-safe calls here.
void on_signal(int) {
  int saved_errno = errno;
  if (signalled.exchange(true)) _exit(kExitInterrupted);
  if (const char* note = first_note.load()) {
    [[maybe_unused]] ssize_t written = write(STDERR_FILENO, note, std::strlen(note));
  }
  errno = saved_errno;
}
}  // namespace

InterruptGuard::InterruptGuard(const char* note) {
  check(first_note.load() == nullptr, "interrupt: one guard at a time");
  first_note = note;
  signalled = false;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &earlier_actions[i]);
}

InterruptGuard::~InterruptGuard() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &earlier_actions[i], nullptr);
  first_note = nullptr;
}

bool interrupted() {
  return signalled.load();
}
void clear_interrupt() {
  signalled = false;
}

}  // namespace strata::apps
