#!/usr/bin/env bash
# Every C++ and CUDA source is formatted as .clang-format says. Versions differ in details: 14 decides.
set -euo pipefail
for tool in clang-format-14 clang-format; do
  if command -v "$tool" >/dev/null && [[ $("$tool" --version) == *" version 14."* ]]; then
    format=$tool
    break
  fi
done
if [[ -z ${format:-} ]]; then
  echo "SKIPPED: clang-format 14 is not installed (apt-get install clang-format-14)"
  exit 77
fi
folders=(tensor cuda autograd nn optim data models apps tests bench)
existing=()
for folder in "${folders[@]}"; do
  [[ ! -d $folder ]] || existing+=("$folder")
done
bad=$(find "${existing[@]}" -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' |
  xargs -P 2 -n 50 "$format" --dry-run 2>&1 | sed -n 's/^\([^:]*\):.*clang-format-violations.*/\1/p' | sort -u)
if [[ -n $bad ]]; then
  printf 'Not formatted as .clang-format says:\n%s\n' "$bad"
  echo "$format -i FILE does it."
  exit 1
fi
