#!/usr/bin/env python3
"""A LoRA adapter that PEFT itself saved, for stories260K, with the logits it gives -> peft_stories_adapter/.

    python peft_stories_adapter.py ../data/stories260K peft_stories_adapter

Written with torch 2.15.0, transformers 5.24.0, peft 0.21.2. A is PEFT's own initial value, B is drawn so that the adapter
has an effect; one module has a rank and an alpha of its own. logits.json: ids and the logits of the last two positions (f64).
"""
import json
import pathlib
import sys

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

model_folder, out = sys.argv[1], pathlib.Path(sys.argv[2])
torch.manual_seed(7)
model = AutoModelForCausalLM.from_pretrained(model_folder, dtype=torch.float32)
config = LoraConfig(r=4, lora_alpha=10, target_modules=["q_proj", "v_proj", "down_proj"], task_type="CAUSAL_LM",
                    rank_pattern={"layers.1.self_attn.q_proj": 2}, alpha_pattern={"layers.1.self_attn.q_proj": 6})
tuned = get_peft_model(model, config)
with torch.no_grad():
    for name, p in tuned.named_parameters():
        if "lora_B" in name:
            p.normal_(0, 0.2)
tuned.save_pretrained(out)
ids = json.load(open(pathlib.Path(model_folder) / "golden.json"))["nll"]["ids"][:40]
with torch.no_grad():
    logits = tuned.double().eval()(torch.tensor([ids])).logits[0, -2:]
json.dump({"ids": ids, "logits": [[float(f"{v:.9g}") for v in row] for row in logits.tolist()]}, open(out / "logits.json", "w"))
(out / "README.md").unlink(missing_ok=True)
