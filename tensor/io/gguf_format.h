// What reader and writer of GGUF share: value types, element types and their numbers. (ggml docs/gguf.md, ggml.h)
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tensor/io/json.h"
#include "tensor/kernels/quant.h"

namespace strata::gguf {

inline constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
inline constexpr uint32_t kVersion = 3;
inline constexpr uint64_t kDefaultAlignment = 32;
inline constexpr uint64_t kMaxAlignment = 1 << 24;

enum class ValueType : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };
inline constexpr uint32_t kValueTypes = 13;
const char* value_type_name(ValueType type);  // "u8", "string", ...

/// One metadata pair with its type in the file; `element` is the type of an array's values.
struct Entry {
  std::string key;
  ValueType type;
  Json value;
  ValueType element = ValueType::u8;
};

/// Element types of ggml. Those without dtype and block cannot be read here; their sizes are known all the same, so
/// that a file that holds one can still be listed. Q8_1 and Q8_K exist in memory only.
struct ElementType {
  uint32_t id;
  std::string_view name;
  int64_t block_values;
  int64_t block_bytes;
  std::optional<DType> dtype;
  std::optional<QuantType> block;
};

inline constexpr std::array kElementTypes = {
    ElementType{0, "F32", 1, 4, DType::f32, {}},
    ElementType{1, "F16", 1, 2, DType::f16, {}},
    ElementType{2, "Q4_0", 32, 18, {}, QuantType::q4_0},
    ElementType{3, "Q4_1", 32, 20, {}, QuantType::q4_1},
    ElementType{6, "Q5_0", 32, 22, {}, QuantType::q5_0},
    ElementType{7, "Q5_1", 32, 24, {}, QuantType::q5_1},
    ElementType{8, "Q8_0", 32, 34, {}, QuantType::q8_0},
    ElementType{10, "Q2_K", 256, 84, {}, {}},
    ElementType{11, "Q3_K", 256, 110, {}, {}},
    ElementType{12, "Q4_K", 256, 144, {}, QuantType::q4_k},
    ElementType{13, "Q5_K", 256, 176, {}, QuantType::q5_k},
    ElementType{14, "Q6_K", 256, 210, {}, QuantType::q6_k},
    ElementType{16, "IQ2_XXS", 256, 66, {}, {}},
    ElementType{17, "IQ2_XS", 256, 74, {}, {}},
    ElementType{18, "IQ3_XXS", 256, 98, {}, {}},
    ElementType{19, "IQ1_S", 256, 50, {}, {}},
    ElementType{20, "IQ4_NL", 32, 18, {}, {}},
    ElementType{21, "IQ3_S", 256, 110, {}, {}},
    ElementType{22, "IQ2_S", 256, 82, {}, {}},
    ElementType{23, "IQ4_XS", 256, 136, {}, {}},
    ElementType{24, "I8", 1, 1, DType::i8, {}},
    ElementType{25, "I16", 1, 2, {}, {}},
    ElementType{26, "I32", 1, 4, DType::i32, {}},
    ElementType{27, "I64", 1, 8, DType::i64, {}},
    ElementType{28, "F64", 1, 8, DType::f64, {}},
    ElementType{29, "IQ1_M", 256, 56, {}, {}},
    ElementType{30, "BF16", 1, 2, DType::bf16, {}},
    ElementType{34, "TQ1_0", 256, 54, {}, {}},
    ElementType{35, "TQ2_0", 256, 66, {}, {}},
    ElementType{39, "MXFP4", 32, 17, {}, {}},
    ElementType{40, "NVFP4", 64, 36, {}, {}},
    ElementType{41, "Q1_0", 128, 18, {}, {}},
};

}  // namespace strata::gguf
