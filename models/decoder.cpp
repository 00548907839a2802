#include "models/decoder.h"

#include <cmath>

#include "autograd/autograd.h"
#include "autograd/ops/attention.h"
#include "autograd/ops/copy.h"
#include "autograd/ops/cross_entropy.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/rope.h"
#include "models/random_weights.h"
#include "tensor/create.h"

namespace strata::models {

TokenBatch TokenBatch::from(const std::vector<std::vector<int32_t>>& sequences, const std::vector<int64_t>& offsets) {
  check(offsets.empty() || offsets.size() == sequences.size(), "token batch: {} offsets for {} sequences",
        offsets.size(), sequences.size());
  std::vector<int32_t> ids, positions;
  std::vector<int64_t> lengths;
  for (size_t s = 0; s < sequences.size(); ++s) {
    lengths.push_back(static_cast<int64_t>(sequences[s].size()));
    int64_t at = offsets.empty() ? 0 : offsets[s];
    for (int32_t id : sequences[s]) {
      ids.push_back(id);
      positions.push_back(static_cast<int32_t>(at++));
    }
  }
  auto n = static_cast<int64_t>(ids.size());
  return {from_values(ids, {n}), from_values(positions, {n}), Ragged::packed(lengths)};
}

Attention::Attention(const DecoderConfig& c, const std::string& name, WeightSource& weights)
    : config_(c),
      q_proj_(child("q_proj", weights.linear(name + ".q_proj", c.hidden_size, c.heads * c.head_dim, c.attention_bias))),
      k_proj_(
          child("k_proj", weights.linear(name + ".k_proj", c.hidden_size, c.kv_heads * c.head_dim, c.attention_bias))),
      v_proj_(
          child("v_proj", weights.linear(name + ".v_proj", c.hidden_size, c.kv_heads * c.head_dim, c.attention_bias))),
      o_proj_(
          child("o_proj", weights.linear(name + ".o_proj", c.heads * c.head_dim, c.hidden_size, c.attention_bias))) {}

Tensor Attention::forward(const Tensor& x, const TokenBatch& batch, const Rotary& rotary, KvCache* cache,
                          int64_t layer) const {
  int64_t n = x.size(0);
  Tensor q = reshape(q_proj_->forward(x), {n, config_.heads, config_.head_dim});     // [N, H, D]
  Tensor k = reshape(k_proj_->forward(x), {n, config_.kv_heads, config_.head_dim});  // [N, Hk, D]
  Tensor v = reshape(v_proj_->forward(x), {n, config_.kv_heads, config_.head_dim});  // [N, Hk, D]
  q = rope(q, rotary.cos, rotary.sin, batch.positions);
  k = rope(k, rotary.cos, rotary.sin, batch.positions);
  Tensor y;  // [N, H, D]
  if (cache) {
    cache->append(layer, k, v, batch.rows);
    y = attention(q, cache->keys(layer), cache->values(layer), batch.rows, cache->visible(batch.rows));
  } else {
    y = attention(q, k, v, batch.rows, batch.rows);
  }
  return o_proj_->forward(reshape(y, {n, config_.heads * config_.head_dim}));
}

Mlp::Mlp(const DecoderConfig& c, const std::string& name, WeightSource& weights)
    : gate_proj_(
          child("gate_proj", weights.linear(name + ".gate_proj", c.hidden_size, c.intermediate_size, c.mlp_bias))),
      up_proj_(child("up_proj", weights.linear(name + ".up_proj", c.hidden_size, c.intermediate_size, c.mlp_bias))),
      down_proj_(
          child("down_proj", weights.linear(name + ".down_proj", c.intermediate_size, c.hidden_size, c.mlp_bias))) {}

Tensor Mlp::forward(const Tensor& x) const {
  return down_proj_->forward(swiglu(gate_proj_->forward(x), up_proj_->forward(x)));
}

DecoderLayer::DecoderLayer(const DecoderConfig& c, const std::string& name, WeightSource& weights)
    : self_attn_(child("self_attn", std::make_shared<Attention>(c, name + ".self_attn", weights))),
      mlp_(child("mlp", std::make_shared<Mlp>(c, name + ".mlp", weights))),
      input_layernorm_(child("input_layernorm", weights.rms_norm(name + ".input_layernorm", c.hidden_size, c.rms_eps))),
      post_attention_layernorm_(child("post_attention_layernorm",
                                      weights.rms_norm(name + ".post_attention_layernorm", c.hidden_size, c.rms_eps))) {
}

Tensor DecoderLayer::forward(const Tensor& x, const TokenBatch& batch, const Attention::Rotary& rotary, KvCache* cache,
                             int64_t layer) const {
  NameScope scope("model.layers." + std::to_string(layer));
  Tensor h = x + self_attn_->forward(input_layernorm_->forward(x), batch, rotary, cache, layer);
  return h + mlp_->forward(post_attention_layernorm_->forward(h));
}

namespace {

int64_t count_quantized(nn::Module& model) {
  int64_t count = 0;
  model.for_each_module([&](const std::string&, nn::Module& m) {
    if (auto* q = dynamic_cast<nn::QuantizedLinear*>(&m)) count += q->weight.rows * q->weight.columns;
    if (auto* e = dynamic_cast<nn::QuantizedEmbedding*>(&m)) count += e->weight.rows * e->weight.columns;
  });
  return count;
}

}  // namespace

Decoder::Decoder(const DecoderConfig& config, WeightSource& weights)
    : config_(config),
      inverse_frequencies_(rope_inverse_frequencies(config)),
      embed_tokens_(
          child("model.embed_tokens", weights.embedding("model.embed_tokens", config.vocab_size, config.hidden_size))) {
  for (int64_t i = 0; i < config.layers; ++i) {
    std::string name = "model.layers." + std::to_string(i);
    layers_.push_back(child(name, std::make_shared<DecoderLayer>(config, name, weights)));
  }
  norm_.emplace(child("model.norm", weights.rms_norm("model.norm", config.hidden_size, config.rms_eps)));
  config_.tied_embeddings = !weights.has("lm_head.weight");
  if (!config_.tied_embeddings)
    lm_head_.emplace(child("lm_head", weights.linear("lm_head", config.hidden_size, config.vocab_size, false)));
  quantized_values_ = count_quantized(*this);
}

std::shared_ptr<Decoder> Decoder::random(const DecoderConfig& config, uint64_t seed) {
  RandomWeights weights(seed, config.initializer_range, config.tied_embeddings);
  return std::make_shared<Decoder>(config, weights);
}

// cos and sin of position * inverse frequency for at least `positions` positions.
void Decoder::extend_rotary(int64_t positions) const {
  check(positions <= config_.max_positions, "decoder: position {} is beyond the model's context of {} tokens",
        positions - 1, config_.max_positions);
  int64_t have = rotary_.cos ? rotary_.cos.size(0) : 0;
  if (positions <= have) return;
  int64_t want = std::min(config_.max_positions, std::max<int64_t>(positions, std::max<int64_t>(256, 2 * have)));
  auto half = static_cast<int64_t>(inverse_frequencies_.size());
  rotary_.cos = empty({want, half});
  rotary_.sin = empty({want, half});
  float* c = rotary_.cos.mutable_data<float>();
  float* s = rotary_.sin.mutable_data<float>();
  for (int64_t p = 0; p < want; ++p)
    for (int64_t i = 0; i < half; ++i) {
      double angle = static_cast<double>(p) * inverse_frequencies_[static_cast<size_t>(i)];
      c[p * half + i] = static_cast<float>(std::cos(angle));
      s[p * half + i] = static_cast<float>(std::sin(angle));
    }
}

namespace {
int64_t highest_position(const TokenBatch& batch) {
  const int32_t* p = batch.positions.data<int32_t>();
  int32_t highest = 0;
  for (int64_t i = 0; i < batch.positions.numel(); ++i) {
    check(p[i] >= 0, "decoder: positions must be non-negative, got {}", p[i]);
    highest = std::max(highest, p[i]);
  }
  return highest;
}
}  // namespace

Tensor Decoder::hidden(const TokenBatch& batch, KvCache* cache) const {
  check(
      batch.ids.rank() == 1 && batch.positions.shape() == batch.ids.shape() && batch.rows.total() == batch.ids.numel(),
      "decoder: ids, positions and rows must agree, got {}, {} and {} rows", batch.ids.shape(), batch.positions.shape(),
      batch.rows.total());
  if (batch.ids.numel() > 0) extend_rotary(highest_position(batch) + 1);
  Tensor x = embed_tokens_->forward(batch.ids);  // [N, C]
  for (int64_t i = 0; i < config_.layers; ++i) {
    const auto& layer = layers_[static_cast<size_t>(i)];
    auto run = [&layer, batch, rotary = rotary_, cache, i](const std::vector<Tensor>& in) {
      return layer->forward(in[0], batch, rotary, cache, i);
    };
    x = checkpointing_ && !cache ? checkpoint(run, {x}) : run({x});
  }
  if (cache) cache->advance(batch.rows);
  return (*norm_)->forward(x);
}

Tensor Decoder::head(const Tensor& hidden) const {
  return lm_head_ ? (*lm_head_)->forward(hidden) : embed_tokens_->as_head(hidden);
}

Tensor Decoder::loss_sum(const TokenBatch& batch, const Tensor& targets) const {
  Tensor h = hidden(batch);  // [N, C]
  if (!lm_head_) return embed_tokens_->head_loss(h, targets);
  return (*lm_head_)->head_loss(h, targets);
}

Tensor Decoder::token_losses(const TokenBatch& batch, const Tensor& targets) const {
  NoGrad off;
  Tensor h = hidden(batch);  // [N, C]
  constexpr int64_t kChunk = 256;
  std::vector<Tensor> parts;
  for (int64_t at = 0; at < h.size(0); at += kChunk) {
    int64_t n = std::min(kChunk, h.size(0) - at);
    parts.push_back(token_nll(head(narrow(h, 0, at, n)), narrow(targets, 0, at, n)));
  }
  return parts.empty() ? zeros({0}) : cat(parts, 0);
}

}  // namespace strata::models
