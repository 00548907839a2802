#!/usr/bin/env bash
# Strata and PyTorch side by side on this machine: LoRA training and greedy decoding of SmolLM2-135M, f32, equal threads.
#   bench/peers/compare.sh MODEL.gguf PYTHON [THREADS]     PYTHON: an interpreter with the packages of README.md
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
model=$1 python=$2 threads=${3:-2}
strata=build/release/bin/strata
data=tests/data/instruct/instruction-data.json
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

peak() { /usr/bin/time -f %M -o "$work/rss" "$@"; }

echo "LoRA training (r 16, seven projections, batch 8, 10 steps): tokens of the records per second, peak resident MiB"
peak "$strata" finetune lora -m "$model" -d "$data" --out "$work/run" --max-steps 10 --answers 0 --train-share 0.9 \
  --validation-share 0 --no-shuffle --no-group-by-length --threads "$threads" >/dev/null 2>&1
"$python" - "$work/run/metrics.jsonl" "$(cat "$work/rss")" <<'PY'
import json, sys
steps = [s for s in map(json.loads, open(sys.argv[1])) if "tokens" in s]
seconds = sum(s["tokens"] / s["tokens_per_second"] for s in steps)
print(f"  strata   {sum(s['tokens'] for s in steps) / seconds:7.1f} tokens/s  {int(sys.argv[2]) / 1024:7.0f} MiB")
PY
"$python" bench/peers/torch_lora_train.py --model "$model" --data "$data" --threads "$threads" --steps 10 2>/dev/null | "$python" -c '
import json, sys
r = json.loads(sys.stdin.readlines()[-1])
print("  pytorch  {:7.1f} tokens/s  {:7.0f} MiB".format(r["real_tokens_per_s"], r["peak_rss_mib"]))'

echo "greedy decoding of 128 tokens: tokens per second, peak resident MiB"
peak "$strata" generate -m "$model" --ignore-eos -p "Photosynthesis is the process by which" -n 128 --threads "$threads" \
  2>"$work/log" >/dev/null
echo "  strata   $(sed -nE 's/.* new at ([0-9.]+) tokens.*/\1/p' "$work/log") tokens/s  $(($(cat "$work/rss") / 1024)) MiB"
"$python" bench/peers/transformers_generate.py --model "$model" --threads "$threads" --new-tokens 128 2>/dev/null | "$python" -c '
import json, sys
r = json.loads(sys.stdin.readlines()[-1])
print("  pytorch  {} tokens/s  {:.0f} MiB".format(r["decode_tokens_per_s"], r["peak_rss_mib"]))'
