// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "plan/foreign/msccl_xml.hpp"
#include "plan/verify/verify.hpp"

#include <sucl/error.hpp>

#include <gtest/gtest.h>

namespace sucl::plan {
namespace {

// A ring of three: what comes is reduced and sent on, then the results go round.
std::string ring() {
  std::string text =
      "<!-- by hand -->\n<algo name=\"ring\" proto=\"Simple\" nchannels=\"1\" "
      "nchunksperloop=\"3\" ngpus=\"3\" coll=\"allreduce\" inplace=\"1\">\n";
  const auto step = [&](int s, const std::string& type, int chunk) {
    const std::string c = std::to_string(chunk);
    text += "   <step s=\"" + std::to_string(s) + "\" type=\"" + type +
            "\" srcbuf=\"i\" srcoff=\"" + c + "\" dstbuf=\"i\" dstoff=\"" + c +
            "\" cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>\n";
  };
  for (int g = 0; g < 3; ++g) {
    const auto chunk = [&](int back) { return (g - back + 6) % 3; };
    text +=
        " <gpu id=\"" + std::to_string(g) + "\" i_chunks=\"3\" o_chunks=\"0\" s_chunks=\"0\">\n";
    text += "  <tb id=\"0\" send=\"" + std::to_string((g + 1) % 3) + "\" recv=\"" +
            std::to_string((g + 2) % 3) + "\" chan=\"0\">\n";
    step(0, "s", chunk(0));
    step(1, "rrs", chunk(1));
    step(2, "rrcs", chunk(2));
    step(3, "rcs", chunk(3));
    step(4, "r", chunk(4));
    text += "  </tb>\n </gpu>\n";
  }
  return text + "</algo>\n";
}

// Two GPUs: one thread block copies, another one waits for it and sends what it has copied.
std::string exchange(const std::string& depid, const std::string& deps) {
  std::string text =
      "<algo name=\"pair\" nchunksperloop=\"2\" ngpus=\"2\" coll=\"allgather\" inplace=\"0\">";
  for (const std::string g : {"0", "1"}) {
    const std::string other = g == "0" ? "1" : "0";
    text +=
        "<gpu id=\"" + g +
        "\" i_chunks=\"1\" o_chunks=\"2\" s_chunks=\"0\">"
        "<tb id=\"0\" send=\"-1\" recv=\"-1\" chan=\"0\"><step s=\"0\" type=\"cpy\" srcbuf=\"i\" "
        "srcoff=\"0\" dstbuf=\"o\" dstoff=\"" +
        g +
        "\" cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"1\"/></tb>"
        "<tb id=\"1\" send=\"" +
        other + "\" recv=\"" + other +
        "\" chan=\"0\">"
        "<step s=\"0\" type=\"s\" srcbuf=\"o\" srcoff=\"" +
        g + "\" dstbuf=\"o\" dstoff=\"" + g + "\" cnt=\"1\" depid=\"" + depid + "\" deps=\"" +
        deps +
        "\" hasdep=\"0\"/>"
        "<step s=\"1\" type=\"r\" srcbuf=\"o\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"" +
        other + "\" cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/></tb></gpu>";
  }
  return text + "</algo>";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  text.replace(text.find(from), from.size(), to);
  return text;
}

std::string refusal(const std::string& text) {
  try {
    from_msccl_xml(text);
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::invalid_argument);
    return e.what();
  }
  return "none";
}

TEST(msccl_xml, right_plans_are_proved) {
  const verdict v = verify(from_msccl_xml(ring()));
  EXPECT_TRUE(v) << v.message;
  EXPECT_TRUE(v.identical);
  const verdict pair = verify(from_msccl_xml(exchange("0", "0")));
  EXPECT_TRUE(pair) << pair.message;
}

TEST(msccl_xml, faults_are_found) {
  EXPECT_EQ(verify(from_msccl_xml(exchange("-1", "-1"))).what, fault::race);
  // A step that reduces no more, one chunk that is another, a message that is never received.
  EXPECT_EQ(verify(from_msccl_xml(replaced(ring(), "\"rrs\"", "\"rcs\""))).what, fault::result);
  EXPECT_FALSE(verify(from_msccl_xml(replaced(ring(), "\"r\"", "\"rrc\""))));
  EXPECT_EQ(verify(from_msccl_xml(replaced(exchange("0", "0"), "\"r\"", "\"nop\""))).what,
            fault::unmatched);
}

TEST(msccl_xml, says_where_it_is_wrong) {
  const auto expect = [](const std::string& text, const std::string& part) {
    const std::string said = refusal(text);
    EXPECT_NE(said.find(part), std::string::npos) << said;
  };
  expect("", "no whole <algo>");
  expect("hello", "text between");
  expect("<algo", "has no end");
  expect("<!-- ", "comment has no end");
  expect(replaced(ring(), "nchunksperloop=\"3\"", "nchunksperloop=\"0\""),
         "line 2: nchunksperloop = 0");
  expect(replaced(ring(), "coll=\"allreduce\"", "coll=\"all\""), "no collective");
  expect(replaced(ring(), "\"rrs\"", "\"xyz\""), "line 6: 'xyz'");
  expect(replaced(ring(), "cnt=\"1\"", "cnt=\"0\""), "line 5: cnt = 0 is out of range");
  expect(replaced(ring(), "cnt=\"1\"", "cnt=\"x\""), "no number");
  expect(replaced(ring(), "send=\"1\"", "send=\"0\""), "line 4");
  expect(replaced(ring(), "recv=\"2\"", "recv=\"7\""), "GPU 7 is no peer");
  expect(replaced(ring(), "gpu id=\"1\"", "gpu id=\"2\""), "not the next one");
  expect(replaced(ring(), "srcbuf=\"i\"", "srcbuf=\"q\""), "no buffer");
  expect(replaced(ring(), "</gpu>", "</tb>"), "ends nothing");
  expect(exchange("5", "0"), "which is not there");
  expect(exchange("0", "3"), "which is not there");
}

}  // namespace
}  // namespace sucl::plan
