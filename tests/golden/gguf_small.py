"""Writes gguf_small.gguf with the Python package gguf: every value type, arrays, plain and block tensors, an alignment that
is not the default. Run with gguf 0.19.0, numpy:

    python tests/golden/gguf_small.py
"""
import pathlib

import gguf
import numpy as np

out = gguf.GGUFWriter(pathlib.Path(__file__).with_name("gguf_small.gguf"), "llama")
out.add_custom_alignment(64)
out.add_uint8("v.u8", 255)
out.add_int8("v.i8", -128)
out.add_uint16("v.u16", 65535)
out.add_int16("v.i16", -32768)
out.add_uint32("v.u32", 4294967295)
out.add_int32("v.i32", -2147483648)
out.add_float32("v.f32", 1e-5)
out.add_bool("v.true", True)
out.add_string("v.string", "a\n\"é😀")
out.add_uint64("v.u64", 18446744073709551615)
out.add_int64("v.i64", -9223372036854775808)
out.add_float64("v.f64", 0.1)
out.add_array("v.strings", ["<s>", "", "Ġhello"])
out.add_array("v.ints", [1, -2, 3])
out.add_array("v.floats", [0.5, -1000.0])
out.add_array("v.bools", [True, False])
i = np.arange(6, dtype=np.float32)
out.add_tensor("f32", i.reshape(2, 3) / 4)
out.add_tensor("f16", (i - 2).astype(np.float16))
out.add_tensor("bf16", np.array([0x3f80, 0xc000], dtype=np.uint16).view(np.uint8), raw_dtype=gguf.GGMLQuantizationType.BF16)
out.add_tensor("i8", np.array([-1, 2, -3], dtype=np.int8))
out.add_tensor("i32", np.array([[7], [-8]], dtype=np.int32))
out.add_tensor("i64", np.array([1 << 40], dtype=np.int64))
out.add_tensor("f64", np.array([0.1], dtype=np.float64))
rows = np.linspace(-1, 1, 2 * 3 * 64, dtype=np.float32).reshape(2, 3, 64)
for name in ("Q8_0", "Q4_1"):
    kind = gguf.GGMLQuantizationType[name]
    out.add_tensor(name.lower(), gguf.quantize(rows, kind), raw_dtype=kind)
out.write_header_to_file()
out.write_kv_data_to_file()
out.write_tensors_to_file()
out.close()
