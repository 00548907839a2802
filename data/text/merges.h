// The merge table of a BPE model, as files spell it.
#pragma once

#include <vector>

#include "data/text/bpe.h"
#include "data/text/place.h"
#include "data/text/vocabulary.h"

namespace strata::text {

/// A list of "a b" strings or ["a", "b"] pairs, the most important first. FormatError if a, b or ab is no token.
std::vector<Merge> read_merges(const Json& list, const Place& place, const Vocabulary& vocabulary);

/// The merges a SentencePiece vocabulary implies: every token may be joined from any two that spell it; the rank is
/// that of its score, highest first, equal scores sharing a rank. Only tokens with usable[id] take part.
std::vector<Merge> merges_from_scores(const Vocabulary& vocabulary, const std::vector<float>& scores,
                                      const std::vector<bool>& usable);

}  // namespace strata::text
