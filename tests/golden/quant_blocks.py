"""Writes quant_blocks.safetensors: packed blocks of every type with the values the Python package gguf gives for them, and
rows with the bytes gguf packs them into. Run with gguf 0.19.0, numpy, safetensors:

    python tests/golden/quant_blocks.py
"""
import pathlib

import gguf
import numpy as np
from safetensors.numpy import save_file

ROWS, COLUMNS = 2, 512
rng = np.random.default_rng(20240229)
types = {name: gguf.GGMLQuantizationType[name] for name in
         ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K")}
# Where each type keeps its f16 numbers: random bits there would be infinities and NaN.
halves = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q4_K": [0, 2], "Q5_K": [0, 2],
          "Q6_K": [208]}
out = {}

for name, kind in types.items():
    values, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = rng.integers(0, 256, (ROWS, COLUMNS // values, size), dtype=np.uint8)
    for at in halves[name]:
        scale = rng.normal(0, 0.01, blocks.shape[:2]).astype(np.float16)
        scale[0, 0] = np.float16(6e-8)  # the smallest subnormal
        blocks[:, :, at:at + 2] = scale[..., None].view(np.uint8)
    packed = blocks.reshape(ROWS, -1)
    out[f"{name}.packed"] = packed
    out[f"{name}.values"] = gguf.dequantize(packed, kind).astype(np.float32)

# Rows to pack: random, all zero, one value, a tie of +max and -max, halves that round, one large outlier.
x = np.zeros((6, 64), dtype=np.float32)
x[0] = rng.normal(0, 1, 64)
x[2] = 0.37
x[3, 5], x[3, 9] = 2.0, -2.0
x[4] = (np.arange(64) - 32) / 8
x[5] = rng.normal(0, 0.01, 64)
x[5, 40] = -700
out["rows"] = x
for name in ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"):
    out[f"{name}.rows"] = gguf.quantize(x, types[name])

save_file({k: np.ascontiguousarray(v) for k, v in out.items()},
          pathlib.Path(__file__).with_name("quant_blocks.safetensors"), {"made_by": "gguf 0.19.0"})
