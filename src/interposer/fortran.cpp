// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "interposer/fortran.hpp"

#include <link.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace sucl::interposer {
namespace {

// The functions that take requests, which SuCL may have executed, and the end of MPI.
constexpr std::array<std::string_view, 17> functions{"wait",
                                                     "waitall",
                                                     "waitany",
                                                     "waitsome",
                                                     "test",
                                                     "testall",
                                                     "testany",
                                                     "testsome",
                                                     "start",
                                                     "startall",
                                                     "cancel",
                                                     "finalize",
                                                     "request_free",
                                                     "request_get_status",
                                                     "request_get_status_all",
                                                     "request_get_status_any",
                                                     "request_get_status_some"};

bool is_unseen(std::string_view name, bool all) {
  constexpr std::string_view prefix = "mpi_";
  if (name.substr(0, prefix.size()) != prefix) return false;
  name.remove_prefix(prefix.size());
  const auto without = [&](std::string_view suffix) {
    if (name.size() < suffix.size() || name.substr(name.size() - suffix.size()) != suffix)
      return false;
    name.remove_suffix(suffix.size());
    return true;
  };
  if (!without("_f08_") && !(all && without("_"))) return false;
  return std::find(functions.begin(), functions.end(), name) != functions.end();
}

/// The symbols that a loaded file's relocations name.
class references {
 public:
  explicit references(const dl_phdr_info& file) : m_base(file.dlpi_addr) {
    const ElfW(Dyn)* entry = nullptr;
    for (int i = 0; i < file.dlpi_phnum; ++i)
      if (file.dlpi_phdr[i].p_type == PT_DYNAMIC)
        entry = reinterpret_cast<const ElfW(Dyn)*>(m_base + file.dlpi_phdr[i].p_vaddr);
    for (; entry && entry->d_tag != DT_NULL; ++entry) {
      switch (entry->d_tag) {
        case DT_SYMTAB: m_symbols = at<ElfW(Sym)>(entry->d_un.d_ptr); break;
        case DT_STRTAB: m_names = at<char>(entry->d_un.d_ptr); break;
        case DT_RELA: m_data.first = at<ElfW(Rela)>(entry->d_un.d_ptr); break;
        case DT_RELASZ: m_data.bytes = entry->d_un.d_val; break;
        case DT_JMPREL: m_calls.first = at<ElfW(Rela)>(entry->d_un.d_ptr); break;
        case DT_PLTRELSZ: m_calls.bytes = entry->d_un.d_val; break;
        default: break;
      }
    }
  }

  std::string unseen(bool all) const {
    if (!m_symbols || !m_names) return {};
    for (const table& t : {m_calls, m_data})
      for (std::size_t i = 0; t.first && i < t.bytes / sizeof(ElfW(Rela)); ++i) {
        const auto index = ELF64_R_SYM(t.first[i].r_info);
        if (index == 0 || m_symbols[index].st_shndx != SHN_UNDEF) continue;
        const char* const name = m_names + m_symbols[index].st_name;
        if (is_unseen(name, all)) return name;
      }
    return {};
  }

 private:
  struct table {
    const ElfW(Rela) * first = nullptr;
    std::size_t bytes = 0;
  };
  // The dynamic linker has made addresses of offsets, but not in files that are read-only.
  template <class T>
  const T* at(ElfW(Addr) place) const {
    return reinterpret_cast<const T*>(place < m_base ? m_base + place : place);
  }

  ElfW(Addr) m_base;
  const ElfW(Sym) * m_symbols = nullptr;
  const char* m_names = nullptr;
  table m_data, m_calls;
};

}  // namespace

std::string unseen_fortran(bool all) {
  struct search {
    bool all;
    std::string found;
  } s{all, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* file, std::size_t, void* to) {
        auto& wanted = *static_cast<search*>(to);
        const std::string_view path = file->dlpi_name ? file->dlpi_name : "";
        // Parts of the library call each other.
        if (path.substr(path.rfind('/') + 1).substr(0, 6) == "libmpi") return 0;
        wanted.found = references(*file).unseen(wanted.all);
        return wanted.found.empty() ? 0 : 1;
      },
      &s);
  return s.found;
}

}  // namespace sucl::interposer
