"""Loads SmolLM2 (or any Llama-architecture GGUF with a gpt2/smollm tokenizer) into PyTorch, for the reference
scripts of this folder and the peers of bench/peers.

transformers' own from_pretrained(gguf_file=...) is not used: it knows nothing of `tokenizer.ggml.pre = smollm`, so it
forgets that SmolLM2 splits every digit, and it needs a config it guesses. Here each tensor is dequantised by the
gguf package (f32), the q and k rows are put back from llama.cpp's interleaved order into the half-split order that
LlamaForCausalLM rotates, and the tokenizer is built from the GGUF metadata with the tokenizers package.
"""

import inspect

import numpy as np
import torch
import tokenizers
from gguf import GGUFReader
from gguf.quants import dequantize
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM

IM_START, IM_END = "<|im_start|>", "<|im_end|>"

# The argument of forward() that takes the KV cache: transformers renamed it on its way through version 5.
CACHE_ARGUMENT = "cache" if "cache" in inspect.signature(LlamaForCausalLM.forward).parameters else "past_key_values"


def metadata(path):
    """All key-value pairs of a GGUF file as Python values."""
    reader = GGUFReader(path)
    return {k: f.contents() for k, f in reader.fields.items() if not k.startswith("GGUF.")}


def load_tokenizer(path):
    """tokenizers.Tokenizer from the metadata. Special (control) tokens found in the text become their ids; set
    `tokenizer.encode_special_tokens = True` to have them split like ordinary text instead. Nothing is added in front
    or behind (add_bos_token is false)."""
    meta = metadata(path)
    assert meta["tokenizer.ggml.model"] == "gpt2" and meta["tokenizer.ggml.pre"] == "smollm"
    tokens, kinds = meta["tokenizer.ggml.tokens"], meta["tokenizer.ggml.token_type"]
    merges = [tuple(m.split(" ")) for m in meta["tokenizer.ggml.merges"]]
    tok = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=merges, fuse_unk=False))
    # pre = smollm: single digits first, then GPT-2's split of each stretch between them.
    tok.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
    ])
    tok.decoder = decoders.ByteLevel()
    tok.add_special_tokens([AddedToken(t, special=True, normalized=False) for t, k in zip(tokens, kinds) if k == 3])
    assert tok.get_vocab_size() == len(tokens)
    return tok


def encode(tok, text, parse_special=True):
    tok.encode_special_tokens = not parse_special
    return tok.encode(text, add_special_tokens=False).ids


def decode(tok, ids):
    """Special tokens stay visible; bytes that are not UTF-8 become U+FFFD."""
    return tok.decode(ids, skip_special_tokens=False)


def _half_split(weight, heads):
    """llama.cpp row order (pairs 2i, 2i+1 rotate together) -> Hugging Face's (i, i + D/2)."""
    rows, cols = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, cols).swapaxes(1, 2).reshape(rows, cols)


def load_model(path, dtype=torch.float32, attn_implementation="sdpa"):
    """LlamaForCausalLM in eval mode with the GGUF's dequantised weights."""
    reader = GGUFReader(path)
    meta = metadata(path)
    assert meta["general.architecture"] == "llama"
    heads, kv_heads = meta["llama.attention.head_count"], meta["llama.attention.head_count_kv"]
    tensors = {t.name: np.ascontiguousarray(dequantize(t.data, t.tensor_type).astype(np.float32)) for t in reader.tensors}
    config = LlamaConfig(
        vocab_size=meta["llama.vocab_size"], hidden_size=meta["llama.embedding_length"],
        intermediate_size=meta["llama.feed_forward_length"], num_hidden_layers=meta["llama.block_count"],
        num_attention_heads=heads, num_key_value_heads=kv_heads,
        max_position_embeddings=meta["llama.context_length"],
        rms_norm_eps=float(np.float32(meta["llama.attention.layer_norm_rms_epsilon"])),
        rope_theta=float(meta["llama.rope.freq_base"]), attention_bias=False, mlp_bias=False, hidden_act="silu",
        tie_word_embeddings="output.weight" not in tensors,
        bos_token_id=meta["tokenizer.ggml.bos_token_id"], eos_token_id=meta["tokenizer.ggml.eos_token_id"],
        pad_token_id=meta["tokenizer.ggml.padding_token_id"],
    )
    config._attn_implementation = attn_implementation
    state = {"model.embed_tokens.weight": tensors.pop("token_embd.weight"),
             "model.norm.weight": tensors.pop("output_norm.weight")}
    if "output.weight" in tensors:
        state["lm_head.weight"] = tensors.pop("output.weight")
    names = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
             "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
             "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
    for name, value in tensors.items():
        _, layer, kind, _ = name.split(".")
        if kind in ("attn_q", "attn_k"):
            value = _half_split(value, heads if kind == "attn_q" else kv_heads)
        state[f"model.layers.{layer}.{names[kind]}.weight"] = value

    model = LlamaForCausalLM(config)
    missing, unexpected = model.load_state_dict({k: torch.from_numpy(np.ascontiguousarray(v)) for k, v in state.items()},
                                                strict=False)
    assert not unexpected and set(missing) <= {"lm_head.weight"}, (missing, unexpected)
    model.tie_weights()
    rope = getattr(model.config, "rope_parameters", None) or {"rope_theta": model.config.rope_theta}
    assert rope["rope_theta"] == meta["llama.rope.freq_base"], rope
    model = model.to(dtype).eval()
    # A model built in f32 keeps f32 rotary frequencies; `.to(float64)` widens them, which is what we want to compare.
    return model


def versions():
    import gguf, peft, platform, transformers  # noqa: E401
    from importlib.metadata import version
    return {"python": platform.python_version(), "torch": torch.__version__, "transformers": transformers.__version__,
            "peft": peft.__version__, "tokenizers": tokenizers.__version__, "gguf": version("gguf"),
            "numpy": np.__version__}
