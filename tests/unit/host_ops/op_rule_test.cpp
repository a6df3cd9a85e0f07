// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Every op on every type against docs/reference/operations.md, by bits: the host's loops of each
// instruction set, the kernels' folds, the mock's, and what the staging converts.
#include "../backends/mock/reduce.hpp"
#include "core/host_ops/fold.hpp"
#include "core/staging/convert.hpp"
#include "kernels/collective/fold.hpp"
#include "support/special_elements.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>

namespace {

using namespace sucl;
using reference::value;

/// Elements of each source, one after the other.
struct operands {
  type t;
  op o;
  std::vector<std::vector<std::byte>> sources;
  std::size_t one() const { return size_of(t); }
  std::size_t count() const { return sources[0].size() / one(); }
  int ranks() const { return static_cast<int>(sources.size()); }
  std::vector<const std::byte*> at(std::size_t i) const {
    std::vector<const std::byte*> all;
    for (const auto& s : sources) all.push_back(s.data() + i * one());
    return all;
  }
};

std::string text(const operands& x, std::size_t i) {
  std::string line = std::string(name(x.t)) + " " + name(x.o) + " of";
  for (const std::byte* e : x.at(i)) {
    line += " ";
    for (std::size_t b = x.one(); b-- > 0;) {
      char digits[4];
      std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(e[b]));
      line += digits;
    }
  }
  return line;
}

/// All pairs of special elements, and random ones of more sources.
std::vector<operands> cases_of(type t, op o) {
  const auto special = reference::special_elements(t);
  std::vector<operands> all{{t, o, {{}, {}}}};
  const auto append = [](std::vector<std::byte>& to, const value& e) {
    to.insert(to.end(), e.begin(), e.end());
  };
  for (const value& a : special)
    for (const value& b : special) {
      append(all[0].sources[0], a);
      append(all[0].sources[1], b);
    }
  std::mt19937_64 random(static_cast<std::uint64_t>(t) * 100 + static_cast<std::uint64_t>(o));
  for (const std::size_t sources : {1, 2, 3, 5}) {
    operands x{t, o, std::vector<std::vector<std::byte>>(sources)};
    for (auto& s : x.sources)
      for (int i = 0; i < 1003; ++i) append(s, reference::any_element(t, special, random));
    all.push_back(std::move(x));
  }
  return all;
}

using compute = std::function<void(const operands&, std::byte* to)>;

/// Whether `fold` gives what the rule says, and the same with two operands exchanged.
void check(const char* what, type t, op o, const compute& fold) {
  for (operands& x : cases_of(t, o)) {
    const std::size_t one = x.one();
    std::vector<std::byte> got(x.count() * one), exchanged(x.count() * one);
    fold(x, got.data());
    for (std::size_t i = 0; i < x.count(); ++i) {
      const value is = reference::bare(t, value(&got[i * one], &got[i * one] + one));
      const value must = reference::bare(t, reference::reduce(t, o, x.at(i)));
      ASSERT_EQ(is, must) << what << ": " << text(x, i);
    }
    if (x.ranks() != 2) continue;
    std::swap(x.sources[0], x.sources[1]);
    fold(x, exchanged.data());
    for (std::size_t i = 0; i < x.count(); ++i)
      ASSERT_EQ(reference::bare(t, value(&got[i * one], &got[i * one] + one)),
                reference::bare(t, value(&exchanged[i * one], &exchanged[i * one] + one)))
          << what << ", exchanged: " << text(x, i);
  }
}

void for_all(const std::function<void(type, op)>& body) {
  for (int t = 1; t < SUCL_TYPE_COUNT; ++t)
    for (int o = 1; o < SUCL_OP_COUNT; ++o)
      if (defined(static_cast<op>(o), static_cast<type>(t)))
        body(static_cast<type>(t), static_cast<op>(o));
}

void fold_with(core::fold_function fold, const operands& x, std::byte* to) {
  std::vector<const void*> from;
  for (const auto& s : x.sources) from.push_back(s.data());
  fold(to, from.data(), from.size(), x.count(), x.ranks());
}

TEST(op_rule, holds_for_host_loops_of_every_instruction_set) {
  using core::instruction_set;
  for (const auto set :
       {instruction_set::baseline, instruction_set::avx2, instruction_set::avx512}) {
    if (set < core::best_instruction_set()) continue;
    for_all([&](type t, op o) {
      const auto fold = core::find_fold(set, static_cast<sucl_type>(t), static_cast<sucl_op>(o));
      ASSERT_NE(fold, nullptr);
      check(core::name(set), t, o,
            [&](const operands& x, std::byte* to) { fold_with(fold, x, to); });
    });
  }
}

template <class Folder>
void fold_quads(const Folder& folder, const operands& x, std::byte* to) {
  using kernels::quad;
  const std::size_t bytes = x.count() * x.one();
  for (std::size_t at = 0; at < bytes; at += sizeof(quad)) {
    const std::size_t n = std::min(sizeof(quad), bytes - at);
    quad result[1];
    folder(result, x.ranks(), x.ranks(), [&](int s, int) {
      quad q{};
      std::memcpy(&q, x.sources[static_cast<std::size_t>(s)].data() + at, n);
      return q;
    });
    std::memcpy(to + at, &result[0], n);
  }
}

TEST(op_rule, holds_for_kernels) {
  using namespace kernels::elements;
  for_all([](type t, op o) {
    check("kernels", t, o, [&](const operands& x, std::byte* to) {
      fold_quads(kernels::fold_any{static_cast<sucl_type>(t), static_cast<sucl_op>(o)}, x, to);
    });
  });
  const auto check_sum = [](type t, const auto& folder) {
    check("kernels of sums", t, op::sum,
          [&](const operands& x, std::byte* to) { fold_quads(folder, x, to); });
  };
  check_sum(type::fp32, kernels::fold_of<plain<float>, add>{});
  check_sum(type::fp64, kernels::fold_of<plain<double>, add>{});
  check_sum(type::fp16, kernels::fold_of<half16, add>{});
  check_sum(type::bf16, kernels::fold_of<brain16, add>{});
  check_sum(type::fp8_e4m3, kernels::fold_of<small8, add>{});
}

TEST(op_rule, holds_for_the_mock) {
  for_all([](type t, op o) {
    check("mock", t, o, [&](const operands& x, std::byte* to) {
      mock::reduce(static_cast<sucl_type>(t), static_cast<sucl_op>(o), x.at(0), x.count(),
                   x.ranks(), to);
    });
  });
}

// Converted, combined as the backend does it, and converted back.
void convert(const core::conversion& how, const operands& x, std::byte* to) {
  const std::size_t wide = size_of(static_cast<type>(how.type)) * how.components;
  operands wire{static_cast<type>(how.type), static_cast<op>(how.op), {}};
  for (const auto& s : x.sources) {
    wire.sources.emplace_back(s);
    if (how.load == nullptr) continue;
    wire.sources.back().resize(x.count() * wide);
    how.load(wire.sources.back().data(), s.data(), x.count());
  }
  std::vector<std::byte> sum(x.count() * wide);
  fold_with(core::find_fold(how.type, how.op), wire, sum.data());
  how.store(to, sum.data(), x.count(), x.ranks());
}

TEST(op_rule, holds_for_what_is_converted) {
  for_all([](type t, op o) {
    const auto* how = core::conversion_for(static_cast<sucl_type>(t), static_cast<sucl_op>(o));
    if (how == nullptr) return;
    check("converted", t, o, [&](const operands& x, std::byte* to) {
      if (o == op::avg && x.ranks() == 1)  // a communicator of one rank converts nothing
        std::memcpy(to, x.sources[0].data(), x.sources[0].size());
      else
        convert(*how, x, to);
    });
  });
}

}  // namespace
