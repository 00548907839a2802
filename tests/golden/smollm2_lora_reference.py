#!/usr/bin/env python3
"""One epoch of LoRA fine-tuning of SmolLM2-135M-Instruct by PEFT in f32 -> smollm2_lora_reference.json.

    python smollm2_lora_reference.py --model SmolLM2-135M-Instruct.Q4_1.gguf --data instruction-data.json \\
        --adapter-out peft_adapter/ --out smollm2_lora_reference.json [--threads 2] [--f64-steps 0] [--progress FILE]

Versions used for the committed file: python 3.11.7, torch 2.15.0 (CPU), transformers 5.24.0, peft 0.21.2,
tokenizers 0.23.3, gguf 0.19.0, numpy 2.4.6.

Everything random follows a rule that another program can compute, so that its run sees the same batches and starts
from the same A. All integers are unsigned 64-bit and wrap around:

    splitmix64(x):  x += 0x9E3779B97F4A7C15
                    z = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
                    z = (z ^ (z >> 27)) * 0x94D049BB133111EB
                    return z ^ (z >> 31)
    fnv1a64(s):     h = 0xCBF29CE484222325; for each byte b of s: h = (h ^ b) * 0x100000001B3

    initial A of module `name`, shape [r, in_features], row-major index i:
        u    = (splitmix64(fnv1a64(name) + i) >> 40) / 2^24                  exact in f32
        A[i] = (2 u - 1) / sqrt(in_features)                                 the root rounded to f32, one f32 division
    with name = the path without PEFT's prefix, e.g. "model.layers.0.self_attn.q_proj". B starts at zero.

    order of the records: indices 0..1099 sorted by (splitmix64(42 + index), index);
        the first 935 train, the next 55 validate, the last 110 test.
    steps: the train list in that order, cut into consecutive batches of 8 (the last holds 7): 117 optimizer steps.

Text of a record (ChatML, no system message, no BOS):
    prompt   = "<|im_start|>user\\n" + instruction + ("\\n\\n" + input if input else "") + "<|im_end|>\\n<|im_start|>assistant\\n"
    response = output + "<|im_end|>\\n"
    ids      = encode(prompt) + encode(output) + [id of <|im_end|>] + encode("\\n")
The pieces are tokenised separately; special tokens become their ids in the prompt, and text is encoded as it is in the
output. Counted targets: the ids of the output and its <|im_end|>; not the final "\\n". Loss of a step = sum of the NLL over the counted
targets / their number: it does not depend on how the batch is cut or padded. Here a batch runs as micro-batches of two records
of like length, padded on the right and masked, whose gradients are added.
"""

import argparse
import json
import math
import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # save_pretrained would look for the base model's config

import numpy as np
import torch
from peft import LoraConfig, get_peft_model

import smollm2
from smollm2_reference import compact, greedy, sha256, top10, widen

MASK = (1 << 64) - 1
TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
RANK, ALPHA, BATCH, LR, WARMUP = 16, 32, 8, 2e-4, 12
SPLIT = (935, 55, 110)
WATCHED = [f"model.layers.{layer}.{part}" for layer in (0, 14, 29)
           for part in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj",
                        "mlp.up_proj", "mlp.down_proj")]


def splitmix64(x):
    """x: numpy uint64 array (wraps silently)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    z = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def fnv1a64(text):
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = ((h ^ byte) * 0x100000001B3) & MASK
    return h


def initial_a(name, shape):
    index = np.uint64(fnv1a64(name)) + np.arange(shape[0] * shape[1], dtype=np.uint64)
    u = (splitmix64(index) >> np.uint64(40)).astype(np.float32) / np.float32(2**24)
    return torch.from_numpy(((np.float32(2) * u - np.float32(1)) / np.float32(math.sqrt(shape[1]))).reshape(shape))


def permutation(count):
    keys = splitmix64(np.uint64(42) + np.arange(count, dtype=np.uint64))
    return sorted(range(count), key=lambda i: (int(keys[i]), i))


def add_adapters(model):
    """PEFT model with the rule's A and zero B; returns it with {module name: (A, B)}."""
    config = LoraConfig(r=RANK, lora_alpha=ALPHA, lora_dropout=0.0, target_modules=TARGETS, bias="none", task_type="CAUSAL_LM")
    model = get_peft_model(model, config)
    pairs = {}
    for name, module in model.named_modules():
        if hasattr(module, "lora_A") and "default" in module.lora_A:
            plain = name.removeprefix("base_model.model.")
            a, b = module.lora_A["default"].weight, module.lora_B["default"].weight
            with torch.no_grad():
                a.copy_(initial_a(plain, tuple(a.shape)))
                b.zero_()
            pairs[plain] = (a, b)
    return model, pairs


def encode_record(tok, record):
    """ids, index of the first counted target, number of counted targets."""
    user = record["instruction"] + ("\n\n" + record["input"] if record["input"] else "")
    prompt = smollm2.encode(tok, f"<|im_start|>user\n{user}<|im_end|>\n<|im_start|>assistant\n")
    output = smollm2.encode(tok, record["output"], parse_special=False)
    end = tok.token_to_id(smollm2.IM_END)
    return prompt + output + [end] + smollm2.encode(tok, "\n"), len(prompt), len(output) + 1


def padded(batch):
    """ids, attention mask and labels (-100 = not counted), padded on the right to the longest record."""
    width = max(len(ids) for ids, _, _ in batch)
    ids = torch.full((len(batch), width), 2)
    mask = torch.zeros((len(batch), width), dtype=torch.long)
    labels = torch.full((len(batch), width), -100)
    for row, (tokens, first, count) in enumerate(batch):
        ids[row, :len(tokens)] = torch.tensor(tokens)
        mask[row, :len(tokens)] = 1
        labels[row, first:first + count] = torch.tensor(tokens[first:first + count])
    return ids, mask, labels


def nll_sum(model, batch):
    """Sum of the NLL over the counted targets (a scalar with a graph); the output head runs on their positions only."""
    ids, mask, labels = padded(batch)
    causal = model.get_base_model()  # LlamaForCausalLM with PEFT's layers inside
    hidden = causal.model(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state[:, :-1]
    counted = labels[:, 1:] != -100
    return torch.nn.functional.cross_entropy(causal.lm_head(hidden[counted]), labels[:, 1:][counted], reduction="sum")


def parts_of(batch):
    """The batch as micro-batches of two records of like length: less padding, and pieces for the threads."""
    by_length = sorted(batch, key=lambda r: len(r[0]))
    return [by_length[i:i + 2] for i in range(0, len(by_length), 2)][::-1]


def in_parallel(function, items):
    """[function(item)...], items side by side on one thread each; their order, so every sum, is fixed."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with ThreadPoolExecutor(threads) as pool:
        values = list(pool.map(function, items))
    torch.set_num_threads(threads)
    return values


def evaluate(model, records):
    """Token-weighted mean NLL."""
    def one(part):
        with torch.no_grad():
            return nll_sum(model, part).item()

    total, counted = sum(in_parallel(one, parts_of(records))), sum(count for _, _, count in records)
    return {"loss": total / counted, "nll": total, "counted_tokens": counted, "records": len(records)}


def gradients(model, weights, batch):
    """Mean NLL over the batch's counted targets; its gradient goes into .grad."""
    counted = sum(count for _, _, count in batch)

    def one(part):
        loss = nll_sum(model, part) / counted
        return loss.item(), torch.autograd.grad(loss, weights)

    parts = in_parallel(one, parts_of(batch))
    for i, w in enumerate(weights):
        w.grad = sum(grads[i] for _, grads in parts)
    return sum(loss for loss, _ in parts), counted


def schedule(step, steps):
    if step < WARMUP:
        return LR * (step + 1) / WARMUP
    return LR * 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / (steps - WARMUP)))


def train(model, pairs, batches, steps, progress=None):
    """Runs the first `steps` steps of the schedule for all of `batches`; one record per step. `progress` names a file that an
    interrupted run left and this one goes on from."""
    weights = [w for pair in pairs.values() for w in pair]
    optimizer = torch.optim.AdamW(weights, lr=LR, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0)
    trace, watched = [], {}
    if progress and os.path.exists(progress):
        saved = torch.load(progress)
        trace, watched = saved["trace"], saved["watched"]
        optimizer.load_state_dict(saved["optimizer"])
        with torch.no_grad():
            for w, value in zip(weights, saved["weights"]):
                w.copy_(value)
    for step in range(len(trace), steps):
        started = time.time()
        rate = schedule(step, len(batches))
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss, counted = gradients(model, weights, batches[step])
        if step == 0:
            watched = {name: pairs[name][1].grad.norm().item() for name in WATCHED}
        norm = torch.nn.utils.clip_grad_norm_(weights, 1.0).item()
        optimizer.step()
        optimizer.zero_grad()
        trace.append({"step": step, "loss": loss, "grad_norm": norm, "lr": rate, "counted_tokens": counted})
        print(f"  step {step + 1}/{len(batches)}  loss {loss:.5f}  grad {norm:.4f}  {time.time() - started:.1f} s", flush=True)
        if progress and step % 5 == 4:
            torch.save({"trace": trace, "watched": watched, "optimizer": optimizer.state_dict(), "weights": weights}, progress + ".new")
            os.replace(progress + ".new", progress)
    return trace, watched


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", required=True, help="instruction-data.json, 1,100 records")
    parser.add_argument("--adapter-out", required=True, help="folder for PEFT's save_pretrained")
    parser.add_argument("--out", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--f64-steps", type=int, default=0, help="repeat the first N steps in f64 and record the losses")
    parser.add_argument("--progress", help="file for the state of the training, to go on after an interruption")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)

    with open(args.data, encoding="utf-8") as f:
        records = json.load(f)
    assert len(records) == sum(SPLIT)
    tok = smollm2.load_tokenizer(args.model)
    order = permutation(len(records))
    encoded = [encode_record(tok, records[i]) for i in order]
    cut = (SPLIT[0], SPLIT[0] + SPLIT[1])
    training, validation, test = encoded[:cut[0]], encoded[cut[0]:cut[1]], encoded[cut[1]:]
    batches = [training[i:i + BATCH] for i in range(0, len(training), BATCH)]

    model, pairs = add_adapters(smollm2.load_model(args.model))
    trainable = [n for n, p in model.named_parameters() if p.requires_grad]
    assert len(trainable) == 2 * len(pairs) == 420, (len(trainable), len(pairs))
    result = {
        "about": "one epoch of LoRA (r 16, alpha 32, all seven projections, no dropout) by PEFT in f32 on the CPU; the rule "
                 "behind batches and initial weights is in the header of the generator",
        "generator": "smollm2_lora_reference.py", "versions": smollm2.versions(),
        "model": {"file": args.model.split("/")[-1], "sha256": sha256(args.model)},
        "data": {"file": args.data.split("/")[-1], "sha256": sha256(args.data)},
        "rule": __doc__[__doc__.index("Everything random"):],
        "settings": {"r": RANK, "alpha": ALPHA, "scaling": ALPHA / RANK, "dropout": 0.0, "target_modules": TARGETS,
                     "batch": BATCH, "steps": len(batches), "optimizer": "AdamW", "lr": LR, "betas": [0.9, 0.999], "eps": 1e-8,
                     "weight_decay": 0.0, "clip_grad_norm": 1.0,
                     "clip": "gradients scaled by min(1, 1 / (norm + 1e-6)), norm over all A and B",
                     "schedule": "step s from 0: s < 12: lr (s + 1) / 12; else lr 0.5 (1 + cos(pi (s - 12) / (steps - 12)))",
                     "trainable_parameters": sum(w.numel() for p in pairs.values() for w in p)},
        "permutation_first": order[:20], "permutation_last": order[-5:],
        "records": [{"index": order[i], "ids": ids, "first_counted": first, "counted": count}
                    for i, (ids, first, count) in enumerate(training[:10])],
        "tokens": {name: {"records": len(part), "tokens": sum(len(r[0]) for r in part), "counted": sum(r[2] for r in part),
                          "longest": max(len(r[0]) for r in part)}
                   for name, part in (("train", training), ("validation", validation), ("test", test))},
        "initial_a": {name: {"shape": list(pairs[name][0].shape), "first": pairs[name][0].detach().flatten()[:4].tolist(),
                             "norm": pairs[name][0].detach().double().norm().item()} for name in WATCHED[:7]},
    }

    model.eval()  # dropout is zero, so eval and train mode are the same computation
    result["validation_before"] = evaluate(model, validation)
    result["test_before"] = evaluate(model, test)
    print("before:", result["validation_before"], result["test_before"], flush=True)
    result["trace"], result["first_step_b_grad_norms"] = train(model, pairs, batches, len(batches), args.progress)
    model.save_pretrained(args.adapter_out)
    result["validation_after"] = evaluate(model, validation)
    result["test_after"] = evaluate(model, test)
    print("after:", result["validation_after"], result["test_after"], flush=True)
    result["mean_train_loss_first_10_last_10"] = [statistics.fmean(t["loss"] for t in part) for part in (result["trace"][:10], result["trace"][-10:])]
    result["tuned_norms"] = {name: {"a": pairs[name][0].detach().norm().item(), "b": pairs[name][1].detach().norm().item()} for name in WATCHED}

    result["tuned_greedy"] = []
    for i in range(5):
        ids, first, _ = test[i]
        new_ids, gaps = greedy(model, ids[:first], 32)
        record = records[order[cut[1] + i]]
        result["tuned_greedy"].append({"index": order[cut[1] + i], "prompt_ids": ids[:first], "new_ids": new_ids,
                                       "decoded": smollm2.decode(tok, new_ids), "expected_output": record["output"], "min_margin": min(gaps)})
    prompt = test[0][0][:test[0][1]]
    result["tuned_logits"] = {"ids": prompt, "positions": top10(model, prompt, 3)[0]}

    if args.f64_steps:
        del model
        model, pairs = add_adapters(smollm2.load_model(args.model))
        widen(model)
        trace, _ = train(model.eval(), pairs, batches, args.f64_steps)
        result["f64_trace"] = [{"step": t["step"], "loss": t["loss"], "grad_norm": t["grad_norm"]} for t in trace]
        gaps = [abs(a["loss"] - b["loss"]) for a, b in zip(trace, result["trace"])]
        result["f64_max_loss_difference"] = max(gaps)
        print("largest difference of a step's loss to f64:", max(gaps))
    with open(args.out, "w", encoding="utf-8") as f:
        f.write(compact(result))


if __name__ == "__main__":
    main()
