#!/usr/bin/env python3
"""Peer: greedy generation speed of transformers, f32 on the CPU, KV cache. Prints one line of JSON.

    python transformers_generate.py --model SmolLM2-135M-Instruct.Q4_1.gguf [--prompt TEXT | --prompt-tokens N] \\
        [--new-tokens 128] [--threads 2] [--repeat 3]

Prefill (one forward pass over the prompt, filling the cache, logits of the last position only) and decoding (one token
a step, argmax) are timed apart. Two figures for decoding: the bare loop over the model, and model.generate() as people call it
(its time includes its own prefill, which is subtracted). Settings: f32, scaled_dot_product_attention, torch.inference_mode. One
untimed pass comes first; the fastest of --repeat is reported, with all of them beside it. EOS does not stop the run.
"""

import argparse
import json
import os
import resource
import sys
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "golden"))

import torch
from transformers import DynamicCache

import smollm2

PROMPT = "<|im_start|>user\nExplain in simple words how a steam engine works.<|im_end|>\n<|im_start|>assistant\n"


def forward(model, ids, cache):
    """Logits of the last position."""
    return model(ids, use_cache=True, logits_to_keep=1, **{smollm2.CACHE_ARGUMENT: cache}).logits[0, -1]


@torch.inference_mode()
def loop(model, ids, count):
    """Seconds of the prefill, seconds of the count - 1 decoding steps after it, the new ids."""
    cache, new_ids = DynamicCache(config=model.config), []
    started = time.perf_counter()
    new_ids.append(forward(model, ids, cache).argmax().item())
    prefilled = time.perf_counter()
    for _ in range(count - 1):
        new_ids.append(forward(model, torch.tensor([[new_ids[-1]]]), cache).argmax().item())
    return prefilled - started, time.perf_counter() - prefilled, new_ids


@torch.inference_mode()
def generate(model, ids, count):
    started = time.perf_counter()
    out = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, min_new_tokens=count, max_new_tokens=count)
    return time.perf_counter() - started, out[0, ids.shape[1]:].tolist()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--prompt", default=PROMPT)
    parser.add_argument("--prompt-tokens", type=int, help="repeat the prompt's ids up to this many tokens")
    parser.add_argument("--new-tokens", type=int, default=128)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)

    tok, model = smollm2.load_tokenizer(args.model), smollm2.load_model(args.model)
    loaded_mib = peak_mib()
    ids = smollm2.encode(tok, args.prompt)
    if args.prompt_tokens:
        ids = (ids * (args.prompt_tokens // len(ids) + 1))[:args.prompt_tokens]
    ids = torch.tensor([ids])

    loop(model, ids, min(8, args.new_tokens))
    runs = [loop(model, ids, args.new_tokens) for _ in range(args.repeat)]
    whole = [generate(model, ids, args.new_tokens)[0] for _ in range(args.repeat)]
    prefill, decode = min(r[0] for r in runs), min(r[1] for r in runs)
    steps = args.new_tokens - 1
    print(json.dumps({
        "peer": "transformers", "work": "generate", "dtype": "f32", "threads": args.threads, "prompt_tokens": ids.shape[1],
        "new_tokens": args.new_tokens, "prefill_s": round(prefill, 4), "prefill_tokens_per_s": round(ids.shape[1] / prefill, 2),
        "decode_tokens_per_s": round(steps / decode, 2), "decode_tokens_per_s_all": [round(steps / r[1], 2) for r in runs],
        "generate_tokens_per_s": round(steps / (min(whole) - prefill), 2), "first_ids": runs[0][2][:8],
        "rss_after_load_mib": loaded_mib, "peak_rss_mib": peak_mib(), "load_1min": round(os.getloadavg()[0], 2), "versions": smollm2.versions()}))


def peak_mib():
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


if __name__ == "__main__":
    main()
