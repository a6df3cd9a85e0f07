// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "interposer/arguments/device_arguments.hpp"

#include <dlfcn.h>

namespace sucl::interposer::device {
namespace {

// Whether the library takes memory of a vendor's devices itself. It is asked in the ways that
// libraries have for that; a wrong guess would crash it.
bool library_takes(std::initializer_list<const char*> questions) {
  for (const char* name : questions)
    if (const auto query = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, name)))
      if (query() == 1) return true;
  return false;
}

bool library_takes(vendor of) {
  static const bool cuda = library_takes({"MPIX_Query_cuda_support"});
  static const bool hip = library_takes({"MPIX_Query_hip_support", "MPIX_Query_rocm_support"});
  return of == vendor::cuda ? cuda : hip;
}

}  // namespace

const std::vector<rows> arguments::none;

void arguments::broadcast(void*& data, std::int64_t count, MPI_Datatype type, int root,
                          MPI_Comm comm) {
  if (!present() || is_plain(data)) return;
  stage(comm, [&](comm_position at) {
    const bool sends = at.rank == root;
    output(data, sends ? run(count, type) : none, sends ? none : run(count, type));
  });
}

void arguments::reduction(sucl_kind kind, const void*& send, void*& recv, std::int64_t count,
                          MPI_Datatype type, int root, MPI_Comm comm) {
  if (!present() || (is_plain(send) && is_plain(recv))) return;
  stage(comm, [&](comm_position at) {
    const bool blocks = kind == SUCL_KIND_REDUCE_SCATTER_BLOCK;
    const bool receives =
        (kind != SUCL_KIND_REDUCE || root == at.rank) && (kind != SUCL_KIND_EXSCAN || at.rank > 0);
    reduced(send, recv, blocks ? count * at.size : count, receives ? count : 0, type,
            kind != SUCL_KIND_REDUCE || root == at.rank);
  });
}

void arguments::exchange(sucl_kind kind, const void*& send, std::int64_t send_count,
                         MPI_Datatype send_type, void*& recv, std::int64_t recv_count,
                         MPI_Datatype recv_type, MPI_Comm comm) {
  if (!present() || (is_plain(send) && is_plain(recv))) return;
  stage(comm, [&](comm_position at) {
    const auto all = run(recv_count * at.size, recv_type);
    const bool in_place = send == MPI_IN_PLACE;
    const bool gathers = kind == SUCL_KIND_ALLGATHER;
    output(recv, in_place ? (gathers ? block(at.rank, recv_count, recv_type) : all) : none, all);
    input(send, run(gathers ? send_count : send_count * at.size, send_type));
  });
}

void arguments::gather(const void*& send, std::int64_t send_count, MPI_Datatype send_type,
                       void*& recv, std::int64_t recv_count, MPI_Datatype recv_type, int root,
                       MPI_Comm comm) {
  if (!present() || (is_plain(send) && is_plain(recv))) return;
  stage(comm, [&](comm_position at) {
    const bool in_place = send == MPI_IN_PLACE;
    if (root == at.rank)
      output(recv, in_place ? block(at.rank, recv_count, recv_type) : none,
             run(recv_count * at.size, recv_type));
    input(send, run(send_count, send_type));
  });
}

void arguments::scatter(const void*& send, std::int64_t send_count, MPI_Datatype send_type,
                        void*& recv, std::int64_t recv_count, MPI_Datatype recv_type, int root,
                        MPI_Comm comm) {
  if (!present() || (is_plain(send) && is_plain(recv))) return;
  stage(comm, [&](comm_position at) {
    if (root == at.rank) input(send, run(send_count * at.size, send_type));
    output(recv, none, run(recv_count, recv_type));
  });
}

void arguments::reduced(const void*& send, void*& recv, std::int64_t sent, std::int64_t received,
                        MPI_Datatype type, bool may_be_in_place) {
  const bool in_place = send == MPI_IN_PLACE;
  if (in_place && !may_be_in_place) return;
  output(recv, in_place ? run(sent, type) : none, run(received, type));
  input(send, run(sent, type));
}

void arguments::input(const void*& argument, layout in) {
  layout out;
  char* const host = add(argument, in, out);
  if (!host) return;
  m_arguments.push_back({&argument, nullptr, argument, host});
  argument = host;
}

void arguments::output(void*& argument, layout in, layout out) {
  char* const host = add(argument, in, out);
  if (!host) return;
  m_arguments.push_back({nullptr, &argument, argument, host});
  argument = host;
}

char* arguments::add(const void* memory, layout& in, layout& out) {
  if ((in.empty() && out.empty()) || is_plain(memory)) return nullptr;
  const rows& some = in.empty() ? out.front() : in.front();
  const auto of = find(static_cast<const char*>(memory) + some.offset);
  if (!of) return nullptr;
  if (!m_staged) m_staged = std::make_shared<staged_memory>();
  if (!library_takes(of->by->of())) m_staged->at_library = true;
  return m_staged->add({*of, const_cast<void*>(memory), std::move(in), std::move(out)});
}

void arguments::set(bool host) const {
  for (const argument& a : m_arguments) {
    const void* const memory = host ? a.host : a.device;
    if (a.in)
      *a.in = memory;
    else
      *a.out = const_cast<void*>(memory);
  }
}

}  // namespace sucl::interposer::device
