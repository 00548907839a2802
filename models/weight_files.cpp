#include "models/weight_files.h"

#include <algorithm>
#include <cstring>

#include "autograd/ops/quant.h"
#include "tensor/create.h"
#include "tensor/io/atomic_file.h"

namespace strata::models {

void FileWeights::check_complete() const {
  nn::LoadReport report = report_;
  for (const std::string& name : names()) {
    bool buffer = name.ends_with("rotary_emb.inv_freq");  // old checkpoints store it; it follows from the config
    bool tied_head = name == "lm_head.weight" && !separate_head_;
    if (!used_.contains(name) && !buffer && !tied_head) report.unexpected.push_back(name);
  }
  check<FormatError>(report.ok(), "{}: the weights do not fit the config: {}", file_, report.text());
}

bool FileWeights::has(const std::string& name) const {
  return name == "lm_head.weight" ? separate_head_ : names().contains(name);
}

void FileWeights::note_mismatch(const std::string& name, const Dims& expected, const Dims& got) {
  report_.mismatched.push_back(fmt::format("{}: expected {}, got {}", name, expected, got));
}

Tensor FileWeights::take(const std::string& name, const Dims& shape) {
  note_use(name);
  if (!names().contains(name)) {
    report_.missing.push_back(name);
    return zeros(shape);
  }
  Tensor t = dense(name);
  if (t.shape() == shape) return t;
  note_mismatch(name, shape, t.shape());
  return zeros(shape);
}

void FileWeights::decide_tying(bool file_has_head, bool equal_to_embedding) {
  separate_head_ = file_has_head && !(config_.tied_embeddings && equal_to_embedding);
  if (config_.tied_embeddings && separate_head_)
    notes_.push_back(
        "the config ties the output head to the embedding but the file holds a different one: kept separate");
  if (!config_.tied_embeddings && !file_has_head)
    notes_.push_back("the config has an output head of its own but the file holds none: tied to the embedding");
}

std::shared_ptr<nn::RMSNorm> FileWeights::rms_norm(const std::string& name, int64_t features, double eps) {
  return std::make_shared<nn::RMSNorm>(take(name + ".weight", {features}), eps);
}

namespace {

bool same_values(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && a.is_contiguous() && b.is_contiguous() &&
         std::memcmp(a.raw_data(), b.raw_data(), static_cast<size_t>(a.bytes())) == 0;
}

Tensor as_f32(const Tensor& t) {
  if (t.dtype() == DType::f32) return t;
  MemoryKindScope kind(MemoryKind::parameter);
  return clone_data(t, DType::f32);
}

}  // namespace

SafetensorsWeights::SafetensorsWeights(SafetensorsFile file, const DecoderConfig& config)
    : FileWeights(file.tensors().empty() ? "model.safetensors" : file.tensors()[0].file.string(), config),
      file_tensors_(std::move(file)) {
  const char* embedding = "model.embed_tokens.weight";
  bool head = file_tensors_.contains("lm_head.weight");
  bool equal = head && file_tensors_.contains(embedding) &&
               same_values(file_tensors_.tensor("lm_head.weight"), file_tensors_.tensor(embedding));
  decide_tying(head, equal);
}

std::set<std::string> SafetensorsWeights::names() const {
  std::set<std::string> all;
  for (const TensorInfo& t : file_tensors_.tensors()) all.insert(t.name);
  return all;
}

Tensor SafetensorsWeights::dense(const std::string& name) {
  Tensor t = file_tensors_.tensor(name);
  check<FormatError>(is_floating(t.dtype()), "{}: tensor '{}' must be floating, got {}", file_, name,
                     dtype_name(t.dtype()));
  return as_f32(t);
}

std::shared_ptr<nn::LinearLayer> SafetensorsWeights::linear(const std::string& name, int64_t in, int64_t out,
                                                            bool bias) {
  Tensor w = take(name + ".weight", {out, in});
  return std::make_shared<nn::Linear>(w, bias ? take(name + ".bias", {out}) : Tensor());
}

std::shared_ptr<nn::EmbeddingLayer> SafetensorsWeights::embedding(const std::string& name, int64_t rows,
                                                                  int64_t columns) {
  return std::make_shared<nn::Embedding>(take(name + ".weight", {rows, columns}));
}

namespace {

struct NamePair {
  const char* gguf;
  const char* hf;
};
constexpr NamePair kOuter[] = {
    {"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}};
constexpr NamePair kInner[] = {
    {"attn_norm", "input_layernorm"}, {"attn_q", "self_attn.q_proj"},      {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},   {"attn_output", "self_attn.o_proj"}, {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},    {"ffn_up", "mlp.up_proj"},           {"ffn_down", "mlp.down_proj"}};

// Splits "<outer>.<n>.<inner>.<weight|bias>" after `outer`; false if it has another form.
bool split_layer_name(std::string_view name, std::string_view outer, std::string& index, std::string& inner,
                      std::string& suffix) {
  if (!name.starts_with(outer)) return false;
  name.remove_prefix(outer.size());
  size_t dot = name.find('.'), last = name.rfind('.');
  if (dot == std::string_view::npos || last <= dot) return false;
  index = name.substr(0, dot);
  inner = name.substr(dot + 1, last - dot - 1);
  suffix = name.substr(last);
  return true;
}

// Row r of the half-split order is row source(r) of the interleaved one.
Tensor permute_rows(const Tensor& x, int64_t head_dim, bool to_half_split) {
  check(x.is_contiguous() && x.size(0) % head_dim == 0, "permute rows: {} rows are not whole heads of {}", x.size(0),
        head_dim);
  MemoryKindScope kind(x.dtype() == DType::u8 ? MemoryKind::quantized : MemoryKind::parameter);
  Tensor y = empty(x.shape(), {x.dtype(), x.device()});
  auto row = static_cast<size_t>(x.bytes() / std::max<int64_t>(x.size(0), 1));
  const std::byte* from = x.raw_data();
  std::byte* to = y.mutable_raw_data();
  int64_t half = head_dim / 2;
  for (int64_t r = 0; r < x.size(0); ++r) {
    int64_t head = r / head_dim * head_dim, i = r % head_dim;
    int64_t interleaved = head + (i < half ? 2 * i : 2 * (i - half) + 1);
    auto a = static_cast<size_t>(to_half_split ? r : interleaved),
         b = static_cast<size_t>(to_half_split ? interleaved : r);
    std::memcpy(to + a * row, from + b * row, row);
  }
  return y;
}

}  // namespace

std::string hf_name_of_gguf(const std::string& name) {
  std::string index, inner, suffix;
  if (split_layer_name(name, "blk.", index, inner, suffix)) {
    for (const NamePair& p : kInner)
      if (inner == p.gguf) return "model.layers." + index + "." + p.hf + suffix;
    return "";
  }
  for (const NamePair& p : kOuter)
    if (name == std::string(p.gguf) + ".weight") return std::string(p.hf) + ".weight";
  return "";
}

std::string gguf_name_of_hf(const std::string& name) {
  std::string index, inner, suffix;
  if (split_layer_name(name, "model.layers.", index, inner, suffix)) {
    for (const NamePair& p : kInner)
      if (inner == p.hf) return "blk." + index + "." + p.gguf + suffix;
    return "";
  }
  for (const NamePair& p : kOuter)
    if (name == std::string(p.hf) + ".weight") return std::string(p.gguf) + ".weight";
  return "";
}

Tensor deinterleave_rows(const Tensor& x, int64_t head_dim) {
  return permute_rows(x, head_dim, true);
}
Tensor interleave_rows(const Tensor& x, int64_t head_dim) {
  return permute_rows(x, head_dim, false);
}

GgufWeights::GgufWeights(GgufFile file, const DecoderConfig& config, bool dequantize, const std::string& path)
    : FileWeights(path, config), gguf_(std::move(file)), dequantize_(dequantize) {
  for (const GgufTensorInfo& t : gguf_.tensors()) {
    if (t.name == "rope_freqs.weight") continue;  // read by rope_divisors
    std::string hf = hf_name_of_gguf(t.name);
    gguf_names_.emplace(hf.empty() ? t.name : hf, t.name);
  }
  decide_tying(gguf_names_.contains("lm_head.weight"), false);
}

std::set<std::string> GgufWeights::names() const {
  std::set<std::string> all;
  for (const auto& [hf, gguf] : gguf_names_) all.insert(hf);
  return all;
}

bool GgufWeights::interleaved(const std::string& name) const {
  return name.find(".self_attn.q_proj.") != std::string::npos || name.find(".self_attn.k_proj.") != std::string::npos;
}

Tensor GgufWeights::dense(const std::string& name) {
  Tensor t = gguf_.tensor_f32(gguf_names_.at(name));
  bool whole_heads = t.rank() >= 1 && t.size(0) % config_.head_dim == 0;
  return interleaved(name) && whole_heads ? deinterleave_rows(t, config_.head_dim) : t;
}

std::optional<QuantizedWeight> GgufWeights::packed(const std::string& name, int64_t rows, int64_t columns) {
  auto it = gguf_names_.find(name);
  if (dequantize_ || it == gguf_names_.end()) return std::nullopt;
  auto held = gguf_.tensor(it->second);
  auto* q = std::get_if<QuantizedWeight>(&held);
  if (!q) return std::nullopt;
  note_use(name);
  if (q->rows != rows || q->columns != columns) {
    note_mismatch(name, {rows, columns}, {q->rows, q->columns});
    return std::nullopt;
  }
  if (interleaved(name)) q->bytes = deinterleave_rows(q->bytes, config_.head_dim);
  return *q;
}

std::shared_ptr<nn::LinearLayer> GgufWeights::linear(const std::string& name, int64_t in, int64_t out, bool bias) {
  // A bias that only the file knows (some converters write zeros) is used rather than refused.
  bool has_bias = bias || gguf_names_.contains(name + ".bias");
  Tensor b = has_bias ? take(name + ".bias", {out}) : Tensor();
  if (auto q = packed(name + ".weight", out, in)) return std::make_shared<nn::QuantizedLinear>(*q, b);
  return std::make_shared<nn::Linear>(take(name + ".weight", {out, in}), b);
}

std::shared_ptr<nn::EmbeddingLayer> GgufWeights::embedding(const std::string& name, int64_t rows, int64_t columns) {
  if (auto q = packed(name + ".weight", rows, columns)) return std::make_shared<nn::QuantizedEmbedding>(*q);
  return std::make_shared<nn::Embedding>(take(name + ".weight", {rows, columns}));
}

std::vector<double> GgufWeights::rope_divisors() {
  if (!gguf_.find("rope_freqs.weight")) return {};
  std::vector<double> divisors = to_vector<double>(gguf_.tensor_f32("rope_freqs.weight"));
  check<FormatError>(static_cast<int64_t>(divisors.size()) == config_.head_dim / 2,
                     "{}: tensor 'rope_freqs.weight' must have {} values, got {}", file_, config_.head_dim / 2,
                     divisors.size());
  for (double d : divisors)
    check<FormatError>(d > 0, "{}: tensor 'rope_freqs.weight' must be positive, got {}", file_, d);
  return divisors;
}

void save_text_file(const std::filesystem::path& path, const std::string& text) {
  write_file_atomically(path, text);
}

}  // namespace strata::models
