// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// Several Work as one.
#pragma once

#include "work.hpp"

#include <utility>
#include <vector>

namespace sucl::torch {

class work_of_all : public c10d::Work {
 public:
  work_of_all(int rank, std::vector<c10::intrusive_ptr<c10d::Work>> all)
      : Work(rank, c10d::OpType::COALESCED, "sucl:coalesced"), m_all(std::move(all)) {}

  bool isCompleted() override {
    for (const auto& one : m_all)
      if (!one->isCompleted()) return false;
    return true;
  }
  bool wait(milliseconds timeout) override {
    for (const auto& one : m_all) one->wait(timeout);
    return true;
  }
  void synchronize() override { wait(milliseconds(0)); }
  void abort() override {}
  std::vector<at::Tensor> result() override {
    tensors all;
    for (const auto& one : m_all)
      for (at::Tensor& t : one->result()) all.push_back(std::move(t));
    return all;
  }

 private:
  std::vector<c10::intrusive_ptr<c10d::Work>> m_all;
};

}  // namespace sucl::torch
