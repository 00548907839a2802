// Weights out of checkpoint files under their Hugging Face names; every tensor is used, or named in an error.
#pragma once

#include <map>
#include <set>

#include "models/decoder.h"
#include "tensor/io/gguf.h"
#include "tensor/io/safetensors.h"

namespace strata::models {

/// What both file kinds share: checking shapes, and collecting all problems instead of stopping at the first.
class FileWeights : public WeightSource {
 public:
  /// Throws FormatError listing everything missing, unexpected or of the wrong shape.
  void check_complete() const;
  const std::vector<std::string>& notes() const { return notes_; }
  bool has(const std::string& name) const override;
  std::shared_ptr<nn::RMSNorm> rms_norm(const std::string& name, int64_t features, double eps) override;

 protected:
  FileWeights(std::string file, const DecoderConfig& config) : file_(std::move(file)), config_(config) {}
  /// All Hugging Face names the file offers.
  virtual std::set<std::string> names() const = 0;
  /// Dense values as f32, in Hugging Face's row order.
  virtual Tensor dense(const std::string& name) = 0;
  /// dense(name) if it is there and has the shape; else notes the problem and returns zeros (check_complete throws).
  Tensor take(const std::string& name, const Dims& shape);
  void note_use(const std::string& name) { used_.insert(name); }
  void note_mismatch(const std::string& name, const Dims& expected, const Dims& got);
  /// Decides tied or not from config and file (call once the names are known).
  void decide_tying(bool file_has_head, bool equal_to_embedding);

  std::string file_;
  DecoderConfig config_;
  std::vector<std::string> notes_;
  bool separate_head_ = false;

 private:
  std::set<std::string> used_;
  nn::LoadReport report_;
};

class SafetensorsWeights : public FileWeights {
 public:
  SafetensorsWeights(SafetensorsFile file, const DecoderConfig& config);
  std::shared_ptr<nn::LinearLayer> linear(const std::string& name, int64_t in, int64_t out, bool bias) override;
  std::shared_ptr<nn::EmbeddingLayer> embedding(const std::string& name, int64_t rows, int64_t columns) override;

 protected:
  std::set<std::string> names() const override;
  Tensor dense(const std::string& name) override;

 private:
  SafetensorsFile file_tensors_;
};

class GgufWeights : public FileWeights {
 public:
  GgufWeights(GgufFile file, const DecoderConfig& config, bool dequantize, const std::string& path);
  std::shared_ptr<nn::LinearLayer> linear(const std::string& name, int64_t in, int64_t out, bool bias) override;
  std::shared_ptr<nn::EmbeddingLayer> embedding(const std::string& name, int64_t rows, int64_t columns) override;
  /// Values of rope_freqs.weight, empty if the file has none.
  std::vector<double> rope_divisors();

 protected:
  std::set<std::string> names() const override;
  Tensor dense(const std::string& name) override;

 private:
  /// The packed weight under a Hugging Face name, rows in Hugging Face's order; nullopt if it is dense or absent.
  std::optional<QuantizedWeight> packed(const std::string& name, int64_t rows, int64_t columns);
  /// Head size if rows of this tensor are interleaved for rotary embedding, else 0.
  bool interleaved(const std::string& name) const;

  GgufFile gguf_;
  bool dequantize_;
  std::map<std::string, std::string> gguf_names_;  // Hugging Face name -> name in the file
};

/// "blk.3.attn_q.weight" -> "model.layers.3.self_attn.q_proj.weight"; empty if unknown.
std::string hf_name_of_gguf(const std::string& name);
/// The reverse.
std::string gguf_name_of_hf(const std::string& name);
/// Rows of each head from GGUF's interleaved order (pairs 2i, 2i + 1) to the half-split order (i, i + D / 2), or back.
/// x has rows first; works on packed bytes too.
Tensor deinterleave_rows(const Tensor& x, int64_t head_dim);
Tensor interleave_rows(const Tensor& x, int64_t head_dim);
/// Writes text through a temporary name.
void save_text_file(const std::filesystem::path& path, const std::string& text);

}  // namespace strata::models
