#!/usr/bin/env bash
# Installs what is missing, builds, runs the tests, prints a summary.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source scripts/setup.sh
source scripts/run_tests.sh

usage() {
  cat <<'USAGE'
Usage: ./test.sh [options]

Makes sure the packages are there (apt-get on Debian 12 and Ubuntu 24.04; nothing is
downloaded when all are), builds, and runs every test but those labelled slow.

  --label L     only tests with this label; a regular expression, e.g. --label "unit|op"
  --without L   all but tests with this label
  --slow        also the tests labelled slow
  --asan        build and run with the address and undefined-behaviour sanitizers
  --preset P    another preset of CMakePresets.json (release, debug, asan, tsan)
  --jobs N      compile jobs and tests at a time (default: all cores)
  --help        this text

Labels: unit op golden emulated gpu e2e fuzz lint package slow.
One test by name, after a build: ctest --preset release -R NAME
USAGE
}

preset=release
jobs=$(nproc)
label=
without=
slow=no
while (($#)); do
  case $1 in
    --label | --without | --preset | --jobs)
      (($# > 1)) || fail "test.sh: $1 needs a value (see ./test.sh --help)"
      printf -v "${1#--}" '%s' "$2"
      shift
      ;;
    --asan) preset=asan ;;
    --slow) slow=yes ;;
    --help | -h) usage; exit ;;
    *) fail "test.sh: unknown option $1 (see ./test.sh --help)" ;;
  esac
  shift
done
[[ $jobs =~ ^[1-9][0-9]*$ ]] || fail "test.sh: --jobs must be a positive number, got $jobs"

strata_setup "build and test" "${strata_build_packages[@]}" "${strata_test_packages[@]}"
strata_build "$preset" "$jobs"

select=()
[[ -z $label ]] || select+=(-L "^($label)\$")
[[ $slow == yes ]] || without=${without:+$without|}slow
[[ -z $without ]] || select+=(-LE "^($without)\$")
strata_run_tests "$preset" "$jobs" "${select[@]}"
