#include "apps/finetune/trainer.h"

#include <chrono>
#include <cmath>

#include "apps/common/human.h"
#include "apps/common/interrupt.h"
#include "apps/common/progress.h"
#include "autograd/autograd.h"
#include "optim/schedule.h"
#include "tensor/random.h"

namespace strata::apps {

namespace {

data::SamplerOptions sampler_options(const FinetuneOptions& o) {
  return {.batch_size = o.batch, .shuffle = o.shuffle, .group_by_length = o.group_by_length, .seed = o.common.seed};
}

std::string lr_text(double lr) {
  return fmt::format("{:.2e}", lr);
}

Json memory_by_kind() {
  MemoryUse use = ledger::at_peak();
  Json j = Json::object();
  for (int k = 0; k < kMemoryKinds; ++k) {
    auto kind = static_cast<MemoryKind>(k);
    if (use[kind] > 0) j.set(memory_kind_name(kind), use[kind]);
  }
  return j;
}

}  // namespace

LoraTrainer::LoraTrainer(const FinetuneOptions& options, ReadyModel& ready, FinetuneData& data, RunFolder& folder)
    : options_(options),
      ready_(ready),
      data_(data),
      folder_(folder),
      sampler_(data.train.records, sampler_options(options)),
      optimizer_(ready.model().trainable_parameters(), {.lr = options.lr, .weight_decay = options.weight_decay}) {
  total_steps_ = data::total_steps(sampler_.batches_per_epoch(), options.accumulation, options.epochs);
  if (options.max_steps > 0) total_steps_ = std::min(total_steps_, options.max_steps);
  int64_t an_epoch = data::steps_per_epoch(sampler_.batches_per_epoch(), options.accumulation);
  eval_every_ = options.eval_every > 0 ? options.eval_every : std::max<int64_t>(1, (an_epoch + 3) / 4);
}

// What must be the same when a run goes on.
Json LoraTrainer::settings() const {
  Json targets = Json::array();
  for (auto& [path, layer] : models::lora_layers(ready_.model()))
    targets.push(fmt::format("{} r={} scale={}", path, layer->options().r, layer->scale()));
  Json j = Json::object();
  j.set("base", ready_.loaded.weights_digest).set("data", data_.digest).set("template", ready_.form->hash());
  j.set("adapters", targets)
      .set("dropout", options_.dropout)
      .set("records", static_cast<int64_t>(data_.train.records.size()));
  j.set("batch", options_.batch).set("accumulation", options_.accumulation).set("total_steps", total_steps_);
  j.set("lr", options_.lr).set("schedule", options_.schedule).set("warmup", options_.warmup);
  j.set("weight_decay", options_.weight_decay).set("clip", options_.clip);
  j.set("shuffle", options_.shuffle).set("group_by_length", options_.group_by_length);
  j.set("max_length", options_.max_length).set("seed", static_cast<unsigned long>(options_.common.seed));
  return j;
}

void LoraTrainer::restore(const optim::Checkpoint& checkpoint) {
  Json now = settings();
  const Json& then = checkpoint.state.at("settings");
  std::vector<std::string> differences;
  for (const auto& [key, value] : now.members())
    if (!then.contains(key) || !(then.at(key) == value)) differences.push_back(key);
  check<UsageError>(differences.empty(), "--resume: these differ from the checkpoint: {}",
                    fmt::join(differences, ", "));

  std::vector<nn::NamedTensor> parameters, moments;
  for (const nn::NamedTensor& t : checkpoint.tensors) {
    if (t.name.starts_with("model.")) parameters.push_back({t.name.substr(6), t.tensor});
    if (t.name.starts_with("optimizer.")) moments.push_back({t.name.substr(10), t.tensor});
  }
  check<FormatError>(
      !moments.empty() || checkpoint.step == 0,
      "{}: the checkpoint holds no optimizer state; start a new run from its weights with --init-adapter",
      checkpoint.folder.string());
  nn::LoadReport report = ready_.model().load_state_dict(parameters, false);
  std::erase_if(report.missing, [](const std::string& n) { return n.find(".lora_") == std::string::npos; });
  check<FormatError>(report.ok(), "{}: {}", checkpoint.folder.string(), report.text());
  optimizer_.load_state_dict(moments, checkpoint.state.get<int64_t>("optimizer_steps"));
  sampler_.restore(
      {checkpoint.state.at("sampler").get<int64_t>("epoch"), checkpoint.state.at("sampler").get<int64_t>("next")});
  default_generator().seed = checkpoint.state.at("generator").get<uint64_t>("seed");
  default_generator().next = checkpoint.state.at("generator").get<uint64_t>("next");
  step_ = checkpoint.step;
  memory = checkpoint.state.at("memory");
  for (const Json& v : checkpoint.state.at("validations").items())
    validations_.push_back({v.get<int64_t>("step"), v.get<double>("loss")});
  for (const Json& line : read_metrics(folder_.path()))
    if (line.contains("loss"))
      steps_.push_back({line.get<int64_t>("step"), line.get<double>("loss"), line.get<double>("lr"),
                        line.get<double>("grad_norm"), line.get<double>("tokens_per_second")});
}

void LoraTrainer::save() {
  std::vector<nn::NamedTensor> tensors;
  for (const auto& p : ready_.model().trainable_parameters()) tensors.push_back({"model." + p.name, p.tensor});
  for (const auto& s : optimizer_.state_dict()) tensors.push_back({"optimizer." + s.name, s.tensor});
  Json validations = Json::array();
  for (const ValidationRecord& v : validations_)
    validations.push(Json::object().set("step", v.step).set("loss", v.loss));
  Json state = Json::object();
  state.set("settings", settings()).set("optimizer_steps", optimizer_.steps_taken());
  state.set("sampler", Json::object().set("epoch", sampler_.state().epoch).set("next", sampler_.state().next));
  state.set("generator", Json::object()
                             .set("seed", static_cast<unsigned long>(default_generator().seed))
                             .set("next", static_cast<unsigned long>(default_generator().next)));
  state.set("memory", memory).set("validations", validations);
  optim::save_checkpoint(folder_.checkpoints(), step_, tensors, state);
}

std::optional<double> LoraTrainer::validate() {
  const auto& records = data_.validation.records;
  if (records.empty()) return std::nullopt;
  NoGrad off;
  ready_.model().eval();
  double sum = 0;
  int64_t counted = 0;
  for (size_t at = 0; at < records.size(); at += static_cast<size_t>(options_.batch)) {
    std::vector<int64_t> positions;
    for (size_t i = at; i < std::min(records.size(), at + static_cast<size_t>(options_.batch)); ++i)
      positions.push_back(static_cast<int64_t>(i));
    ModelBatch batch = to_model_batch(data::ragged_batch(records, positions));
    sum += ready_.model().loss_sum(batch.tokens, batch.targets).item();
    counted += batch.counted;
  }
  if (counted == 0) return std::nullopt;
  return sum / static_cast<double>(counted);
}

void LoraTrainer::record_validation() {
  if (auto loss = validate()) {
    validations_.push_back({step_, *loss});
    folder_.log(step_, Json::object().set("validation_loss", *loss));
  }
}

void LoraTrainer::train_one_step() {
  auto start = std::chrono::steady_clock::now();
  ready_.model().train();
  std::vector<ModelBatch> batches;
  std::vector<int64_t> records;
  int64_t tokens = 0;
  for (const auto& positions : sampler_.next_step(options_.accumulation)) {
    data::RaggedBatch ragged = data::ragged_batch(data_.train.records, positions);
    records.insert(records.end(), ragged.records.begin(), ragged.records.end());
    tokens += static_cast<int64_t>(ragged.ids.size());
    batches.push_back(to_model_batch(ragged));
  }
  std::vector<optim::MicroBatch> micro;
  for (const ModelBatch& b : batches)
    micro.push_back({[this, &b] { return ready_.model().loss_sum(b.tokens, b.targets); }, b.counted});
  ++step_;
  auto warmup = static_cast<int64_t>(std::llround(options_.warmup * static_cast<double>(total_steps_)));
  double lr =
      optim::schedule_named(options_.schedule)(step_, {.peak = options_.lr, .warmup = warmup, .total = total_steps_});
  optimizer_.set_lr(lr);
  optim::StepResult result = optim::train_step(optimizer_, micro, options_.clip);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  double rate = static_cast<double>(tokens) / seconds;
  if (result.skipped) {
    warnings.push_back(fmt::format("step {}: no trainable tokens in records {}; nothing was changed", step_,
                                   fmt::join(records, ", ")));
    folder_.log(step_, Json::object().set("skipped", "no trainable tokens").set("lr", lr));
    return;
  }
  steps_.push_back({step_, result.loss, lr, result.grad_norm, rate});
  folder_.log(step_, Json::object()
                         .set("loss", result.loss)
                         .set("lr", lr)
                         .set("grad_norm", result.grad_norm)
                         .set("tokens", tokens)
                         .set("counted_tokens", result.counted)
                         .set("tokens_per_second", rate)
                         .set("memory_at_peak", memory_by_kind()));
}

bool LoraTrainer::run() {
  InterruptGuard guard;
  Progress progress({.title = "train", .unit = "step", .total = total_steps_, .start = step_});
  if (step_ == 0 && validations_.empty()) {
    record_validation();
    save();
  }
  size_t shown = warnings.size();
  while (step_ < total_steps_) {
    train_one_step();
    for (; shown < warnings.size(); ++shown) progress.print("warning: " + warnings[shown]);
    bool last = step_ == total_steps_;
    if (last || step_ % eval_every_ == 0) record_validation();
    if (last || step_ % options_.save_every == 0 || interrupted()) save();
    ProgressColumns columns;
    if (!steps_.empty()) {
      columns = {{"loss", human_number(steps_.back().loss)},
                 {"lr", lr_text(steps_.back().lr)},
                 {"tok/s", human_count(steps_.back().tokens_per_second)}};
    }
    if (!validations_.empty()) columns.push_back({"val", human_number(validations_.back().loss)});
    progress.update(step_, columns);
    if (interrupted() && !last) return false;
  }
  progress.finish();
  return true;
}

}  // namespace strata::apps
