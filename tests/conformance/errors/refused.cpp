// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// Calls that must not compile: each line marked WRONG, and no other line; see refused.cmake.
#include <sucl/sucl.hpp>

#include <string>

struct plain {
  float value[3];
};
template <int>  // the compiler complains about each type once
struct owner {
  std::string text;  // not trivially copyable
};

void right(sucl::communicator& comm, sycl::buffer<float>& floats, const float* in, float* out) {
  plain p{};
  comm.broadcast(&p, 1, 0);
  comm.blocking().send(&p, 1, 0);
  comm.allreduce(floats, sucl::op::sum);
  comm.gather(floats, floats, 0);
  comm.allreduce(in, out, 1, sucl::op::sum);
  comm.sendrecv(in, 1, 0, out, 1, 0);
}

void owners(sucl::communicator& comm, owner<0>* a, owner<1>* b, owner<2>* c) {
  comm.broadcast(a, 1, 0);          // WRONG
  comm.blocking().allgather(b, 1);  // WRONG
  comm.send(c, 1, 0);               // WRONG
}

void other_types(sucl::communicator& comm, sycl::buffer<float>& floats, sycl::buffer<int>& ints,
                 sycl::buffer<unsigned>& unsigneds, const float* in, int* out) {
  comm.allreduce(floats, ints, sucl::op::sum);                 // WRONG
  comm.allreduce(in, out, 1, sucl::op::sum);                   // WRONG
  comm.blocking().reduce(ints, unsigneds, sucl::op::sum, 0);   // WRONG
  comm.sendrecv(floats, 0, ints, 0);                           // WRONG
  comm.sendrecv(in, 1, 0, out, 1, 0);                          // WRONG
  comm.alltoall(sucl::block(floats), sucl::block(unsigneds));  // WRONG
  comm.gather(ints, floats, 0);                                // WRONG
}

void constant_memory(sucl::communicator& comm, const float* in) {
  comm.recv(in, 1, 0);                       // WRONG
  comm.broadcast(in, 1, 0);                  // WRONG
  comm.allreduce(in, in, 1, sucl::op::sum);  // WRONG
}
