// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "common/mpi.hpp"

#include <dlfcn.h>
#include <link.h>

#include <limits>
#include <stdexcept>
#include <string>

namespace apps {
namespace {

// The module with MPI's calls lies beside SuCL's control plane, which is loaded by now.
std::string module_path() {
  std::string path;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* result) {
        const std::string name = info->dlpi_name;
        const std::string plane = "/libsucl_mpi_";
        const auto at = name.rfind(plane);
        if (at == std::string::npos) return 0;
        *static_cast<std::string*>(result) =
            name.substr(0, at) + "/libsucl_raw_mpi_" + name.substr(at + plane.size());
        return 1;
      },
      &path);
  if (path.empty())
    throw std::runtime_error(
        "this variant needs MPI, and the process is not part of an MPI job. Start it with "
        "'sucl run -n N --' or mpiexec");
  return path;
}

const sucl_raw_mpi* load() {
  static const sucl_raw_mpi* const table = [] {
    void* library = dlopen(module_path().c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) throw std::runtime_error(dlerror());
    auto entry = reinterpret_cast<sucl_raw_mpi_entry_function>(dlsym(library, SUCL_RAW_MPI_ENTRY));
    const sucl_raw_mpi* made = entry ? entry() : nullptr;
    if (!made || made->struct_size < sizeof(sucl_raw_mpi))
      throw std::runtime_error(module_path() + " is of another version of SuCL. Reinstall SuCL");
    return made;
  }();
  return table;
}

void check(int code, const char* what) {
  if (code != 0)
    throw std::runtime_error(std::string("MPI failed in ") + what + " with code " +
                             std::to_string(code));
}

std::int32_t narrow(std::size_t count) {
  if (count > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    throw std::runtime_error(std::to_string(count) +
                             " elements are too many for one MPI call. Use more ranks");
  return static_cast<std::int32_t>(count);
}

}  // namespace

mpi_team::mpi_team(int colour) : m_table(load()), m_comm(m_table->split(colour)) {
  if (!m_comm) throw std::runtime_error("MPI_Comm_split failed");
}

sucl_raw_call mpi_team::call(sucl_kind kind, sucl_type type) const {
  sucl_raw_call c{};
  c.kind = kind;
  c.type = type;
  c.element_size = 1;
  return c;
}

void mpi_team::resolve(sucl_raw_call& c) const {
  if (m_table->resolve(&c, m_comm) != 0)
    throw std::runtime_error("MPI has no such call for this element type");
}

void mpi_team::run(sucl_raw_call& c) const {
  resolve(c);
  check(m_table->run[c.kind](&c), "a collective");
}

void mpi_team::exchange(sucl_type type, const std::vector<mpi_message>& out,
                        const std::vector<mpi_message>& in) const {
  const auto make = [&](sucl_kind kind, const std::vector<mpi_message>& messages) {
    std::vector<sucl_raw_call> calls;
    for (const mpi_message& m : messages) {
      sucl_raw_call c = call(kind, type);
      c.root = c.source = m.peer;
      c.tag = m.tag;
      c.count = narrow(m.count);
      c.send = c.recv = m.memory;
      resolve(c);
      calls.push_back(c);
    }
    return calls;
  };
  const auto recvs = make(SUCL_KIND_RECV, in);
  const auto sends = make(SUCL_KIND_SEND, out);
  check(m_table->exchange(recvs.data(), static_cast<std::int32_t>(recvs.size()), sends.data(),
                          static_cast<std::int32_t>(sends.size())),
        "an exchange");
}

void mpi_team::sum(double* values, std::size_t count) const {
  sucl_raw_call c = call(SUCL_KIND_ALLREDUCE, SUCL_TYPE_FP64);
  c.op = SUCL_OP_SUM;
  c.recv = values;
  c.count = narrow(count);
  run(c);
}

}  // namespace apps
