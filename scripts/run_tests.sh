# Runs ctest and says what came of it. Sourced by test.sh.

# What to show elsewhere than on a terminal: failures with their output, and a sign of life every 100 tests.
strata_show_progress='
  /^ +Start +[0-9]+: / || /^Test project / || !NF { next }
  / tests passed, .* out of / { done = 1 }
  done { next }
  / Test +#[0-9]+: .*( Passed |\*\*\*Skipped |\*\*\*Not Run \(Disabled\))/ {
    if (++n % 100 == 0) { sub(/ *Test +#.*/, ""); print "  ... " $0 " done"; fflush() }
    next
  }
  { print }'

# Counts one line per test of the form "12/345 Test #7: name ....   Passed    0.01 sec".
strata_count='
  / Test +#[0-9]+: / {
    if (/\*\*\*Not Run \(Disabled\)/) next
    if (/ Passed +[0-9.]+ sec/) passed++
    else if (/\*\*\*Skipped /) skipped++
    else failed++
  }
  END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped }'

# From the JUnit file: "name: reason" of skipped tests (gtest prints "file:line: Skipped" and then the reason).
strata_skip_reasons='
  /<testcase / { split($0, part, "\""); name = part[2]; reason = "" }
  take && NF { reason = $0; take = 0 }
  /: Skipped$/ { take = 1 }
  /SKIPPED: / { sub(/.*SKIPPED: /, ""); reason = $0 }
  /<\/testcase>/ && skipped { count[reason]++; if (count[reason] <= 3) names[reason] = names[reason] " " name }
  /<testcase / || /<\/testcase>/ { skipped = 0 }
  /<skipped message="SKIP_/ { skipped = 1 }
  END {
    for (reason in count) {
      if (count[reason] > 3) names[reason] = names[reason] " and " count[reason] - 3 " more"
      print "  " (reason == "" ? "no reason given" : reason) ":" names[reason]
    }
  }'

# strata_run_tests PRESET JOBS CTEST_ARGUMENTS...: nonzero if a test failed or none ran. Last line: the counts.
strata_run_tests() {
  local preset=$1 jobs=$2 start=$SECONDS rc=0 counts
  shift 2
  local log=build/$preset/test.log junit=$PWD/build/$preset/test.xml
  say "Testing (preset $preset, $jobs at a time; log in $log) ..."
  local command=(ctest --preset "$preset" -j "$jobs" --output-junit "$junit" "$@")
  if [[ -t 1 ]]; then
    "${command[@]}" --progress --output-log "$log" || rc=$?
  else
    "${command[@]}" --output-log "$log" 2>&1 | awk "$strata_show_progress" || rc=$?
  fi
  counts=$(awk "$strata_count" "$log")
  if ((rc)); then
    say "" "What failed:"
    sed -n '/^The following tests FAILED:/,/^$/p' "$log" | grep -E '^\s+[0-9]+ - ' || tail -n 20 "$log"
    say "" "Again, with its output: ctest --preset $preset -R '^NAME\$'    All of them: ctest --preset $preset --rerun-failed"
  fi
  say "" "By label (time is the sum over tests):"
  sed -n '/^Label Time Summary:/,/^$/p' "$log" | grep -E '=' | sed 's/^/  /; s/sec\*proc/s/' || true
  if [[ $counts != *" 0 skipped" ]]; then
    say "" "Skipped:"
    awk "$strata_skip_reasons" "$junit"
  fi
  say "" "Tests took $((SECONDS - start)) s."
  say "$counts"
  if [[ $counts == "0 passed, 0 failed"* ]]; then
    say "No test ran: does the label exist? ctest --preset $preset --print-labels" >&2
    return 1
  fi
  return "$rc"
}
