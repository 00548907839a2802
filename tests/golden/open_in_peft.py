#!/usr/bin/env python3
"""Opens an adapter folder in PEFT on top of a GGUF's dequantised weights and gives the logits of a list of ids.

    python open_in_peft.py MODEL_GGUF ADAPTER_DIR --ids 1,4093,198,... [--positions 1] [--top 0] [--out logits.json]
    python open_in_peft.py MODEL_GGUF ADAPTER_DIR --compare strata.json --tolerance 1e-3

--ids takes a comma-separated list or the name of a JSON file that holds a list. Written is
    {"ids": [...], "rows": [{"position": p, "logits": [V numbers]}, ...]}           for the last --positions positions,
or, with --top K, {"position": p, "top": [[id, logit], ...]} instead of whole rows.
--compare reads such a file (whole or top rows, made by another program), computes the same positions here and prints the largest
difference; exit status 1 if it is above --tolerance. No adapter (plain model) with ADAPTER_DIR "none".

The adapter is loaded strictly: every LoRA tensor of the file must find its place, and every LoRA module must be in the file.
Versions it was tried with: torch 2.15.0, transformers 5.24.0, peft 0.21.2, gguf 0.19.0.
"""

import argparse
import json
import os
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # base_model_name_or_path in the adapter is not looked up anywhere

import torch
from peft import PeftModel, get_peft_model_state_dict
from safetensors.torch import load_file

import smollm2


def open_adapter(model, folder):
    tuned = PeftModel.from_pretrained(model, folder)
    in_file = load_file(os.path.join(folder, "adapter_model.safetensors"))
    in_model = get_peft_model_state_dict(tuned)
    missing, surplus = sorted(set(in_model) - set(in_file)), sorted(set(in_file) - set(in_model))
    if missing or surplus:
        sys.exit(f"{folder}: not in the file: {missing[:5]} ({len(missing)}); not in the model: {surplus[:5]} ({len(surplus)})")
    wrong = [n for n in in_file if not torch.equal(in_file[n].float(), in_model[n].float())]
    if wrong:
        sys.exit(f"{folder}: values differ after loading: {wrong[:5]} ({len(wrong)})")
    return tuned.eval(), {"tensors": len(in_file), "parameters": sum(t.numel() for t in in_file.values()),
                          "norm": sum(t.double().pow(2).sum().item() for t in in_file.values()) ** 0.5}


def read_ids(text):
    if os.path.exists(text):
        with open(text, encoding="utf-8") as f:
            return json.load(f)
    return [int(i) for i in text.split(",")]


def compare(logits, wanted):
    """Largest |difference| over all the numbers in `wanted`."""
    worst = 0.0
    for row in wanted["rows"]:
        here = logits[row["position"]]
        pairs = row["top"] if "top" in row else list(enumerate(row["logits"]))
        worst = max(worst, max(abs(here[i].item() - v) for i, v in pairs))
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("adapter")
    parser.add_argument("--ids")
    parser.add_argument("--positions", type=int, default=1, help="how many of the last positions to write (0 = all)")
    parser.add_argument("--top", type=int, default=0, help="only the K best of each position")
    parser.add_argument("--out", help="default: standard output")
    parser.add_argument("--compare", help="logits of another program")
    parser.add_argument("--tolerance", type=float, default=1e-3)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    if bool(args.ids) == bool(args.compare):
        parser.error("give one of --ids and --compare")
    torch.set_num_threads(args.threads)

    model, facts = smollm2.load_model(args.model), {}
    if args.adapter != "none":
        model, facts = open_adapter(model, args.adapter)
    if args.compare:
        with open(args.compare, encoding="utf-8") as f:
            wanted = json.load(f)
    ids = read_ids(args.ids) if args.ids else wanted["ids"]
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0]

    if args.compare:
        worst = compare(logits, wanted)
        print(json.dumps({"max_abs_difference": worst, "tolerance": args.tolerance, "positions": len(wanted["rows"]), "adapter": facts}))
        sys.exit(0 if worst <= args.tolerance else 1)
    rows = []
    for position in range(len(ids) - (args.positions or len(ids)), len(ids)):
        if args.top:
            best = logits[position].topk(args.top)
            rows.append({"position": position, "top": [[i, v] for i, v in zip(best.indices.tolist(), best.values.tolist())]})
        else:
            rows.append({"position": position, "logits": logits[position].tolist()})
    text = json.dumps({"ids": ids, "adapter": facts, "rows": rows})
    if args.out:
        with open(args.out, "w", encoding="utf-8") as f:
            f.write(text + "\n")
    else:
        print(text)


if __name__ == "__main__":
    main()
