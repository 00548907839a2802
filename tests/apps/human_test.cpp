#include "apps/common/human.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "apps/common/table.h"
#include "tensor/error.h"

namespace strata::apps {
namespace {

using testing::ElementsAre;

TEST(Human, Counts) {
  EXPECT_EQ(human_count(0), "0");
  EXPECT_EQ(human_count(950), "950");
  EXPECT_EQ(human_count(-42), "-42");
  EXPECT_EQ(human_count(0.25), "0.2");
  EXPECT_EQ(human_count(1000), "1.0 k");
  EXPECT_EQ(human_count(12345), "12.3 k");
  EXPECT_EQ(human_count(999949), "999.9 k");
  EXPECT_EQ(human_count(999950), "1.0 M");  // never "1000.0 k"
  EXPECT_EQ(human_count(1.2e6), "1.2 M");
  EXPECT_EQ(human_count(134515008), "134.5 M");
  EXPECT_EQ(human_count(8.03e9), "8.0 G");
  EXPECT_EQ(human_count(std::nan("")), "n/a");
}

TEST(Human, Bytes) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1024), "1.00 KiB");
  EXPECT_EQ(human_bytes(540ull << 20), "540 MiB");
  EXPECT_EQ(human_bytes(1571000000), "1.46 GiB");        // 1.4631...
  EXPECT_EQ(human_bytes((1ull << 20) - 1), "1.00 MiB");  // never "1024 KiB"
  EXPECT_EQ(human_bytes(15ull << 30), "15.0 GiB");
  EXPECT_EQ(human_bytes(UINT64_MAX), "16.0 EiB");
}

TEST(Human, Durations) {
  EXPECT_EQ(human_duration(0), "0 s");
  EXPECT_EQ(human_duration(12e-6), "12 us");
  EXPECT_EQ(human_duration(0.42), "420 ms");
  EXPECT_EQ(human_duration(0.9996), "1.0 s");
  EXPECT_EQ(human_duration(12.34), "12.3 s");
  EXPECT_EQ(human_duration(59.97), "1 min 00 s");
  EXPECT_EQ(human_duration(200), "3 min 20 s");
  EXPECT_EQ(human_duration(7500), "2 h 05 min");
  EXPECT_EQ(human_duration(3 * 86400 + 4 * 3600 + 59), "3 d 04 h");
  EXPECT_EQ(human_duration(-1), "n/a");
  EXPECT_EQ(human_duration(INFINITY), "n/a");
}

TEST(Human, WidthCountsColumnsNotBytes) {
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("é"), 1);
  EXPECT_EQ(display_width("e\u0301"), 1);  // e and a combining accent
  EXPECT_EQ(display_width("中文"), 4);
  EXPECT_EQ(display_width("😊"), 2);
  EXPECT_EQ(display_width("\xff\xfe"), 2);  // shown as two replacement characters
}

TEST(Human, PrintableTextCannotMoveTheCursor) {
  EXPECT_EQ(printable("a\x1b[2Jb\r\n"), "a\uFFFD[2Jb\uFFFD\uFFFD");
  EXPECT_EQ(printable("a\nb\tc", "\n\t"), "a\nb\tc");
  EXPECT_EQ(printable("\xff"
                      "a\xc3"),
            "\uFFFDa\uFFFD");
  EXPECT_EQ(printable("a\u202Eb\u2028"), "a\uFFFDb\uFFFD");  // right-to-left override, line separator
  EXPECT_EQ(valid_utf8("a\n\xf0\x9f\x98"), "a\n\uFFFD\uFFFD\uFFFD");
}

TEST(Human, FitNeverCutsInsideACharacter) {
  EXPECT_EQ(fit_columns("hello", 5), "hello");
  EXPECT_EQ(fit_columns("hello!", 5), "hell…");
  EXPECT_EQ(fit_columns("中文字", 5), "中文…");
  EXPECT_EQ(fit_columns("中文字", 4), "中…");  // two columns do not fit beside the dots
  EXPECT_EQ(fit_columns("x", 0), "");
  for (int n = 0; n < 12; ++n) EXPECT_LE(display_width(fit_columns("a😊é中\xf0文bcd", n)), n);
}

TEST(Human, WrapsAtSpaces) {
  EXPECT_THAT(wrap_text("one two three", 8), ElementsAre("one two", "three"));
  EXPECT_THAT(wrap_text("a\nb c", 8), ElementsAre("a", "b c"));
  EXPECT_THAT(wrap_text("unbreakable x", 4), ElementsAre("unbreakable", "x"));
  EXPECT_THAT(wrap_text("", 4), ElementsAre(""));
}

TEST(Table, AlignsNumbersToTheRight) {
  Table table({"kind", "current", "note"});
  table.row({"parameter", "540 MiB", "中文"}).row({"kv cache", "4.2 MiB", "x"}).rule().row({"total", "544 MiB", ""});
  EXPECT_EQ(table.text(),
            "kind       current  note\n"
            "parameter  540 MiB  中文\n"
            "kv cache   4.2 MiB  x\n"
            "────────────────────────\n"
            "total      544 MiB\n");
}

TEST(Table, CutsTheWidestTextToFit) {
  Table table({"name", "n"});
  table.row({"model.layers.0.self_attn.q_proj.weight", "12"});
  EXPECT_EQ(table.text(20), "name               n\nmodel.layers.0.…  12\n");
  EXPECT_THROW(table.row({"one"}), Error);
}

}  // namespace
}  // namespace strata::apps
