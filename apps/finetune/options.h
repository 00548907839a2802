// Flags of `strata finetune lora`.
#pragma once

#include "apps/common/common_flags.h"
#include "apps/model_flags.h"
#include "data/instruct/split.h"
#include "models/adapters.h"

namespace strata::apps {

struct FinetuneOptions {
  CommonOptions common;
  ModelOptions model;
  std::filesystem::path data;
  std::filesystem::path out;
  std::filesystem::path init_adapter;
  bool resume = false;
  bool skip_bad_records = false;

  int64_t rank = 16;
  double alpha = 32;
  double dropout = 0;
  bool rslora = false;
  std::vector<std::string> targets = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"};

  int64_t epochs = 1;
  int64_t max_steps = 0;
  int64_t batch = 8;
  int64_t accumulation = 1;
  int64_t max_length = 1024;
  std::string too_long = "truncate";
  bool shuffle = true;
  bool group_by_length = true;
  bool checkpointing = false;
  data::SplitOptions split;

  double lr = 2e-4;
  std::string schedule = "cosine";
  double warmup = 0.1;
  double weight_decay = 0;
  double clip = 1.0;

  int64_t eval_every = 0;
  int64_t save_every = 25;
  int64_t answers = 5;
  int64_t answer_tokens = 64;

  models::AdapterConfig adapter_config(const std::string& base_name) const;
};

void add_finetune_flags(Flags& flags, FinetuneOptions& options);

}  // namespace strata::apps
