// One configurable decoder-only transformer: embedding, L x (norm, attention, norm, gated MLP), norm, head.
// Module names are those of Hugging Face's Llama checkpoints.
// Shapes: N tokens of all sequences laid end to end, C hidden, H heads, D head size, V vocabulary.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "models/config.h"
#include "models/kv_cache.h"
#include "nn/embedding.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "tensor/ragged.h"

namespace strata::models {

/// Tokens to run through a decoder. ids and positions are i32 [N]; sequence s has rows `rows` of them.
struct TokenBatch {
  Tensor ids;
  Tensor positions;
  Ragged rows;

  /// Sequences laid end to end, each starting at the position given by `offsets` (0 if empty).
  static TokenBatch from(const std::vector<std::vector<int32_t>>& sequences, const std::vector<int64_t>& offsets = {});
};

/// Hands out the weights of a decoder by their Hugging Face name; implementations read files or draw initial values.
class WeightSource {
 public:
  virtual ~WeightSource() = default;
  virtual std::shared_ptr<nn::LinearLayer> linear(const std::string& name, int64_t in, int64_t out, bool bias) = 0;
  virtual std::shared_ptr<nn::EmbeddingLayer> embedding(const std::string& name, int64_t rows, int64_t columns) = 0;
  virtual std::shared_ptr<nn::RMSNorm> rms_norm(const std::string& name, int64_t features, double eps) = 0;
  /// Whether there is a head of its own (lm_head.weight); decides tying together with the config.
  virtual bool has(const std::string& name) const = 0;
};

class Attention : public nn::Module {
 public:
  Attention(const DecoderConfig& config, const std::string& name, WeightSource& weights);
  struct Rotary {
    Tensor cos, sin;  // [positions, D / 2]
  };
  /// x [N, C] -> [N, C]. With a cache, keys and values of earlier tokens come from it and the new ones go into it.
  Tensor forward(const Tensor& x, const TokenBatch& batch, const Rotary& rotary, KvCache* cache, int64_t layer) const;

 private:
  DecoderConfig config_;
  nn::Child<nn::LinearLayer> q_proj_, k_proj_, v_proj_, o_proj_;
};

class Mlp : public nn::Module {
 public:
  Mlp(const DecoderConfig& config, const std::string& name, WeightSource& weights);
  /// down(silu(gate(x)) * up(x)).
  Tensor forward(const Tensor& x) const;

 private:
  nn::Child<nn::LinearLayer> gate_proj_, up_proj_, down_proj_;
};

class DecoderLayer : public nn::Module {
 public:
  DecoderLayer(const DecoderConfig& config, const std::string& name, WeightSource& weights);
  Tensor forward(const Tensor& x, const TokenBatch& batch, const Attention::Rotary& rotary, KvCache* cache,
                 int64_t layer) const;

 private:
  nn::Child<Attention> self_attn_;
  nn::Child<Mlp> mlp_;
  nn::Child<nn::RMSNorm> input_layernorm_, post_attention_layernorm_;
};

class Decoder : public nn::Module {
 public:
  Decoder(const DecoderConfig& config, WeightSource& weights);
  /// New weights drawn from `seed` (normal, std initializer_range; norms 1).
  static std::shared_ptr<Decoder> random(const DecoderConfig& config, uint64_t seed);

  /// Last hidden states after the final norm, [N, C].
  Tensor hidden(const TokenBatch& batch, KvCache* cache = nullptr) const;
  /// hidden [M, C] -> logits [M, V].
  Tensor head(const Tensor& hidden) const;
  /// All logits, [N, V].
  Tensor logits(const TokenBatch& batch, KvCache* cache = nullptr) const { return head(hidden(batch, cache)); }
  /// Sum over counted targets of the negative log likelihood; targets [N] i32, -100 = not counted. The logits are
  /// never whole.
  Tensor loss_sum(const TokenBatch& batch, const Tensor& targets) const;
  /// Negative log likelihood of every target, [N] (0 where not counted). No gradient.
  Tensor token_losses(const TokenBatch& batch, const Tensor& targets) const;

  const DecoderConfig& config() const { return config_; }
  bool tied() const { return config_.tied_embeddings; }
  /// Activation checkpointing: keep only each layer's input, compute the layer again in backward.
  void set_checkpointing(bool on) { checkpointing_ = on; }
  /// Number of block-quantised weights (not listed among parameters).
  int64_t quantized_values() const { return quantized_values_; }
  /// What loading found worth saying (a tied head that differs, ...).
  std::vector<std::string> notes;

 private:
  void extend_rotary(int64_t positions) const;

  DecoderConfig config_;
  bool checkpointing_ = false;
  int64_t quantized_values_ = 0;
  std::vector<double> inverse_frequencies_;
  mutable Attention::Rotary rotary_;
  nn::Child<nn::EmbeddingLayer> embed_tokens_;
  std::vector<nn::Child<DecoderLayer>> layers_;
  std::optional<nn::Child<nn::RMSNorm>> norm_;
  std::optional<nn::Child<nn::LinearLayer>> lm_head_;  // absent when tied
};

}  // namespace strata::models
