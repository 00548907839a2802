#!/usr/bin/env python3
"""Peer: LoRA training throughput of PyTorch + PEFT, f32 on the CPU. Prints one line of JSON.

    python torch_lora_train.py --model SmolLM2-135M-Instruct.Q4_1.gguf --data instruction-data.json \\
        [--threads 2] [--batch 8] [--steps 20] [--warmup 2]

The work: SmolLM2-135M with the GGUF's dequantised weights, LoRA r 16 alpha 32 on all seven projections, AdamW, clipping,
real instruction records in the order and with the encoding of tests/golden/smollm2_lora_reference.py. Settings: f32,
scaled_dot_product_attention, no gradient checkpointing, no KV cache, right padding to the longest record of the batch.
The first --warmup steps are run but not timed. A timed step is batch building, forward, backward, clipping and update.
"""

import argparse
import json
import os
import resource
import statistics
import sys
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "golden"))

import torch

import smollm2
from smollm2_lora_reference import SPLIT, add_adapters, encode_record, padded, permutation


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)

    with open(args.data, encoding="utf-8") as f:
        records = json.load(f)
    tok = smollm2.load_tokenizer(args.model)
    encoded = [encode_record(tok, records[i]) for i in permutation(len(records))[:SPLIT[0]]]
    batches = [encoded[i:i + args.batch] for i in range(0, len(encoded), args.batch)]
    model, pairs = add_adapters(smollm2.load_model(args.model))
    model.train()
    weights = [w for pair in pairs.values() for w in pair]
    optimizer = torch.optim.AdamW(weights, lr=2e-4, weight_decay=0.0)
    loaded_mib = peak_mib()

    seconds, real, with_padding, counted, losses = [], 0, 0, 0, []
    for step in range(args.warmup + args.steps):
        batch = batches[step % len(batches)]
        started = time.perf_counter()
        ids, mask, labels = padded(batch)
        loss = model(input_ids=ids, attention_mask=mask, labels=labels, use_cache=False).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        if step >= args.warmup:
            seconds.append(time.perf_counter() - started)
            real += sum(len(ids) for ids, _, _ in batch)
            with_padding += len(batch) * max(len(ids) for ids, _, _ in batch)
            counted += sum(count for _, _, count in batch)
    total = sum(seconds)
    print(json.dumps({
        "peer": "pytorch+peft", "work": "lora_train", "dtype": "f32", "threads": args.threads, "batch": args.batch, "steps": args.steps,
        "real_tokens_per_s": round(real / total, 2), "padded_tokens_per_s": round(with_padding / total, 2),
        "loss_tokens_per_s": round(counted / total, 2), "step_ms_median": round(1e3 * statistics.median(seconds), 1),
        "step_ms_min": round(1e3 * min(seconds), 1), "step_ms_max": round(1e3 * max(seconds), 1), "real_tokens": real, "padded_tokens": with_padding,
        "first_loss": losses[0], "last_loss": losses[-1], "rss_after_load_mib": loaded_mib, "peak_rss_mib": peak_mib(),
        "load_1min": round(os.getloadavg()[0], 2), "versions": smollm2.versions()}))


def peak_mib():
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


if __name__ == "__main__":
    main()
