#include "models/generation.h"

#include <algorithm>
#include <chrono>

#include "autograd/autograd.h"
#include "autograd/ops/index.h"
#include "tensor/create.h"

namespace strata::models {

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Several texts that grow together over one cache.
class Run {
 public:
  Run(const Decoder& model, KvCache& cache, std::vector<std::vector<int32_t>> texts, const GenerateOptions& options,
      const OnToken& on_token)
      : model_(model), cache_(cache), texts_(std::move(texts)), options_(options), on_token_(on_token) {
    options.sampling.validate();
    for (const auto& text : texts_) {
      check(!text.empty(), "generate: a prompt needs at least one token");
      check(static_cast<int64_t>(text.size()) < model.config().max_positions,
            "generate: the prompt has {} tokens, the model's context is {}", text.size(), model.config().max_positions);
      prompt_tokens_.push_back(text.size());
    }
    results_.resize(texts_.size());
    running_.assign(texts_.size(), true);
  }

  std::vector<Generation> go() {
    NoGrad off;
    auto start = Clock::now();
    std::vector<std::vector<float>> logits = prefill();
    double prefill_seconds = seconds_since(start);
    start = Clock::now();
    for (int64_t step = 0; choose(logits, step); ++step) logits = advance(1);
    for (size_t i = 0; i < results_.size(); ++i) {
      results_[i].prompt_tokens = static_cast<int64_t>(prompt_tokens_[i]);
      results_[i].prefill_seconds = prefill_seconds;
      results_[i].decode_seconds = seconds_since(start);
    }
    return std::move(results_);
  }

  const std::vector<std::vector<int32_t>>& texts() const { return texts_; }

 private:
  // Runs prompts in chunks; the logits of each text come from the pass in which its last token went in.
  std::vector<std::vector<float>> prefill() {
    std::vector<std::vector<float>> last(texts_.size());
    for (;;) {
      bool open = false;
      for (size_t i = 0; i < texts_.size(); ++i) open = open || unread(i) > 0;
      if (!open) return last;
      std::vector<std::vector<float>> logits = advance(std::max<int64_t>(options_.prefill_chunk, 1));
      for (size_t i = 0; i < last.size(); ++i)
        if (!logits[i].empty()) last[i] = std::move(logits[i]);
    }
  }

  int64_t unread(size_t i) const {
    if (!running_[i]) return 0;
    return static_cast<int64_t>(texts_[i].size()) - cache_.length(static_cast<int64_t>(i));
  }

  // Feeds up to `most` unread tokens of each text; returns the logits after the last token of those fully read.
  std::vector<std::vector<float>> advance(int64_t most) {
    std::vector<std::vector<int32_t>> parts(texts_.size());
    std::vector<int64_t> offsets;
    for (size_t i = 0; i < texts_.size(); ++i) {
      int64_t from = cache_.length(static_cast<int64_t>(i));
      int64_t n = std::min(most, unread(i));
      parts[i].assign(texts_[i].begin() + from, texts_[i].begin() + from + n);
      offsets.push_back(from);
    }
    TokenBatch batch = TokenBatch::from(parts, offsets);
    Tensor hidden = model_.hidden(batch, &cache_);  // [N, C]
    std::vector<int64_t> rows;
    std::vector<size_t> owners;
    for (size_t i = 0; i < parts.size(); ++i)
      if (!parts[i].empty() && unread(i) == 0) {
        rows.push_back(batch.rows.start[i] + batch.rows.length[i] - 1);
        owners.push_back(i);
      }
    std::vector<std::vector<float>> logits(texts_.size());
    if (rows.empty()) return logits;
    Tensor all = model_.head(index_select(hidden, from_values(rows, {static_cast<int64_t>(rows.size())})));  // [n, V]
    std::vector<float> values = to_vector<float>(all);
    auto v = static_cast<std::ptrdiff_t>(all.size(1));
    for (size_t k = 0; k < owners.size(); ++k) {
      auto begin = values.begin() + static_cast<std::ptrdiff_t>(k) * v;
      logits[owners[k]].assign(begin, begin + v);
    }
    return logits;
  }

  bool is_stop(int64_t id) const {
    return std::find(options_.stop_ids.begin(), options_.stop_ids.end(), id) != options_.stop_ids.end();
  }

  void finish(size_t i, const char* reason) {
    running_[i] = false;
    results_[i].finish_reason = reason;
  }

  // Picks the next token of every running text; false when none runs on.
  bool choose(std::vector<std::vector<float>>& logits, int64_t step) {
    bool any = false;
    for (size_t i = 0; i < texts_.size(); ++i) {
      if (!running_[i]) continue;
      if (step >= options_.max_new_tokens) {
        finish(i, "length");
        continue;
      }
      if (step < options_.min_new_tokens)
        for (int64_t id : options_.stop_ids)
          if (id < static_cast<int64_t>(logits[i].size())) logits[i][static_cast<size_t>(id)] = -1e30f;
      SamplingOptions sampling = options_.sampling;
      sampling.seed += i;
      int32_t id = sample_token(logits[i], sampling, step, texts_[i]);
      if (is_stop(id)) {
        finish(i, "stop");
        continue;
      }
      texts_[i].push_back(id);
      results_[i].ids.push_back(id);
      auto length = static_cast<int64_t>(texts_[i].size());
      if (on_token_ && !on_token_(static_cast<int64_t>(i), id))
        finish(i, "cancelled");
      else if (step + 1 >= options_.max_new_tokens || length >= model_.config().max_positions ||
               length > cache_.capacity())
        finish(i, "length");
      any = any || running_[i];
    }
    return any;
  }

  const Decoder& model_;
  KvCache& cache_;
  std::vector<std::vector<int32_t>> texts_;
  const GenerateOptions& options_;
  const OnToken& on_token_;
  std::vector<size_t> prompt_tokens_;
  std::vector<bool> running_;
  std::vector<Generation> results_;
};

}  // namespace

std::vector<Generation> generate(const Decoder& model, const std::vector<std::vector<int32_t>>& prompts,
                                 const GenerateOptions& options, const OnToken& on_token) {
  if (prompts.empty()) return {};
  size_t longest = 0;
  for (const auto& p : prompts) longest = std::max(longest, p.size());
  int64_t capacity = std::min(model.config().max_positions,
                              static_cast<int64_t>(longest) + std::max<int64_t>(options.max_new_tokens, 0));
  KvCache cache(model.config(), static_cast<int64_t>(prompts.size()), std::max<int64_t>(capacity, 1));
  return Run(model, cache, prompts, options, on_token).go();
}

Session::Session(const Decoder& model, int64_t capacity)
    : model_(model), cache_(model.config(), 1, std::min(capacity, model.config().max_positions)) {}

void Session::reset() {
  cache_.truncate(0, 0);
  cached_ids_.clear();
}

Generation Session::generate(const std::vector<int32_t>& ids, const GenerateOptions& options, const OnToken& on_token) {
  check(static_cast<int64_t>(ids.size()) <= cache_.capacity(),
        "generate: the text has {} tokens, the session holds {}; start a new chat or give a larger context", ids.size(),
        cache_.capacity());
  size_t same = 0;
  while (same < ids.size() && same < cached_ids_.size() && ids[same] == cached_ids_[same]) ++same;
  if (same == ids.size() && same > 0) --same;  // the last token must run to give logits
  cache_.truncate(0, std::min<int64_t>(static_cast<int64_t>(same), cache_.length(0)));
  cached_ids_.clear();  // in case of an exception below, nothing is trusted
  Run run(model_, cache_, {ids}, options, on_token);
  Generation result;
  try {
    result = std::move(run.go()[0]);
  } catch (...) {
    cache_.truncate(0, 0);
    throw;
  }
  cached_ids_.assign(run.texts()[0].begin(), run.texts()[0].begin() + cache_.length(0));
  return result;
}

}  // namespace strata::models
