// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

/// @file
/// One backend on one communicator.
#pragma once

#include <sucl/abi/backend.h>

#include <string>

namespace sucl::core {

/// One backend on one communicator: what operations are posted to.
///
/// A layer (validate, trace) is a backend_comm too: its table forwards to the one below, which its
/// `comm` holds, so layers stack and the caller of post() does not know of them. A layer's table
/// serves a communicator that exists: it has query, comm_destroy, post, test and abort, but neither
/// open, close nor comm_create. Destroying a layer destroys the backend_comm below it.
struct backend_comm {
  const sucl_backend* table = nullptr;
  sucl_state* state = nullptr;
  sucl_backend_comm* comm = nullptr;
};

/// A backend that executes messages between nodes for a built-in one, which nothing else posts to.
struct transport {
  std::string name;
  backend_comm via;
};

/// The table of a backend that is part of the core, with what every table says of itself; the
/// functions are still to be set.
constexpr sucl_backend table_of(const char* name, const char* description) {
  sucl_backend t{};
  t.struct_size = sizeof t;
  t.abi_major = SUCL_ABI_MAJOR;
  t.abi_minor = SUCL_ABI_MINOR;
  t.name = name;
  t.description = description;
  return t;
}

/// The same for one whose communicators are of a class, which has abort().
template <class Comm>
sucl_backend table_of(const char* name, const char* description,
                      decltype(sucl_backend::query) query, decltype(sucl_backend::post) post,
                      decltype(sucl_backend::test) test) {
  sucl_backend t = table_of(name, description);
  t.query = query;
  t.comm_destroy = [](sucl_backend_comm* c) { delete reinterpret_cast<Comm*>(c); };
  t.post = post;
  t.test = test;
  t.abort = [](sucl_backend_comm* c) { reinterpret_cast<Comm*>(c)->abort(); };
  return t;
}

}  // namespace sucl::core
