"""Writes tokenizer_steps.jsonl: what Hugging Face's own library makes of single steps of a tokenizer.json.

Run: python tokenizer_steps.py (needs tokenizers, nothing else). One record a line:
{"normalizer": {...}, "text": ..., "expected": ...}, {"pre_tokenizer": {...}, "text": ..., "expected": [pieces]},
{"decoder": {...}, "tokens": [...], "expected": ...}. Cases where the library itself crashes are left out.
"""
import json
import os

from tokenizers import Tokenizer

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CL100K = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
BAILING = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
DEEPSEEK = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|"
            r"\s*[\r\n]+|\s+(?!\S)|\s+")

TEXTS = [
    "Hello world", "  a   b ", "I'LL don't he'd 'S 'ſ", "abc123 45 6789.0", "x\r\n\r\n\n y\t\tz", "日本語 text 한국어。",
    "e\u0301cole cafe\u0301 \u0301x", "a\u00a0b\u180ec\u200bd\u3000e\u0085f", "½ ² ٣ Ⅷ ① Ⓐ x²", "👩‍👩‍👧 😀!", "MixedCASE İstanbul ǅ ﬀ",
    "foo_bar-baz (x):\n", "▁a▁▁b", "नमस्ते दुनिया",
]


def split(pattern, behavior="Isolated", invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def pre_tokenizers():
    for p in (GPT2, CL100K, O200K, BAILING, DEEPSEEK, r"\b\w+\b|\B.", r"[\S]+|[^\S\n]+|\n", r"(?m:.)", r"^\s+|\s+$",
              r"(\w)\1", r"(?<=\p{L})\p{N}+", r"\p{N}{,2}", r"\h+", r"[[:alpha:]]+|[[:space:]]", r"(?=[a-c])|(?:|b)x?", r"\W+"):
        yield split(p)
    for behavior in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        for invert in (False, True):
            yield split(r"\s|[a-e]", behavior, invert)
    yield split("a", "MergedWithNext", False, "String")
    yield split("", "Isolated", False, "String")
    for prefix in (False, True):
        for regex in (False, True):
            yield {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}
    for individual in (False, True):
        yield {"type": "Digits", "individual_digits": individual}
    for scheme in ("first", "always", "never"):
        for cut in (False, True):
            yield {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": cut}
    for kind in ("Whitespace", "WhitespaceSplit", "BertPreTokenizer"):
        yield {"type": kind}
    for behavior in ("Isolated", "Contiguous", "Removed"):
        yield {"type": "Punctuation", "behavior": behavior}
    yield {"type": "CharDelimiterSplit", "delimiter": "a"}
    yield {"type": "Sequence", "pretokenizers": [
        {"type": "Punctuation", "behavior": "Contiguous"},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        {"type": "Digits", "individual_digits": False}, split("[0-9][0-9][0-9]")]}
    yield {"type": "Sequence", "pretokenizers": [
        {"type": "WhitespaceSplit"}, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True}]}


def normalizers():
    for kind in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "ByteLevel"):
        yield {"type": kind}
    yield {"type": "Strip", "strip_left": True, "strip_right": False}
    yield {"type": "Strip", "strip_left": False, "strip_right": True}
    yield {"type": "Prepend", "prepend": "▁"}
    yield {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    yield {"type": "Replace", "pattern": {"Regex": " {2,}|[a-c]"}, "content": "$0_"}
    yield {"type": "Sequence", "normalizers": [{"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"}]}


NORMALIZER_TEXTS = TEXTS + ["", "\u1100\u1161\u11a8 \uac00", "\u0f71\u0f72\u0f74\u0301\u0323", "ﷺ ﬁ ℌ Å", "\n x \u3000"]

LLAMA = [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]
DECODERS = [
    {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
    {"type": "Sequence", "decoders": LLAMA},
    {"type": "Sequence", "decoders": LLAMA + [{"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
    {"type": "Sequence", "decoders": [{"type": "Strip", "content": "▁", "start": 1, "stop": 0},
                                      {"type": "Replace", "pattern": {"Regex": "[ab]"}, "content": "_"}]},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": True},
    {"type": "Fuse"},
]
TOKENS = [["▁Hello", "▁world"], ["▁", "▁x"], ["▁▁a", "b▁"], ["<0xE2>", "<0x98>", "<0x83>", "▁a"], ["<0x20>", "x"],
          ["Ġa", "Ċ", "Ã©"], ["ðŁĺ", "Ĭ"], ["日", "▁本"], ["<s>", "▁a"], ["ab▁c"], []]


def step(kind, description):
    base = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
            "pre_tokenizer": None, "post_processor": None, "decoder": None,
            "model": {"type": "BPE", "vocab": {}, "merges": []}}
    base[kind] = description
    return getattr(Tokenizer.from_str(json.dumps(base)), kind)


def records():
    for d in normalizers():
        for text in NORMALIZER_TEXTS:
            yield {"normalizer": d, "text": text, "expected": step("normalizer", d).normalize_str(text)}
    for d in pre_tokenizers():
        for text in TEXTS:
            pieces = [p for p, _ in step("pre_tokenizer", d).pre_tokenize_str(text)]
            yield {"pre_tokenizer": d, "text": text, "expected": pieces}
    for d in DECODERS:
        for tokens in TOKENS:
            try:
                yield {"decoder": d, "tokens": tokens, "expected": step("decoder", d).decode(tokens)}
            except BaseException as e:  # a panic of the Rust library
                print("left out:", d, tokens, e)


with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "tokenizer_steps.jsonl"), "w") as out:
    for record in records():
        out.write(json.dumps(record, ensure_ascii=False) + "\n")
