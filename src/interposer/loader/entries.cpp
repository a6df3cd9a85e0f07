// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0

// MPI's functions, for every MPI library at once: each jumps to where its calls go, with its
// arguments as they are, because what they are depends on the library. In assembler, as no function
// of C passes on what it does not know.
#include "interposer/loader/functions.hpp"

// The addresses that they jump to, one after the other; null until the library is known.
asm(R"(
  .data
  .balign 8
  .globl sucl_pmpi_targets
  .hidden sucl_pmpi_targets
sucl_pmpi_targets:
  .text
)");

#if defined(__x86_64__)

// rax is the only register that a call leaves free here; all others may be arguments, or kept.
#define SUCL_PMPI_ENTRY(name)                \
  asm("  .data\n"                            \
      "sucl_pmpi_to_" #name                  \
      ":\n  .quad 0\n"                       \
      "  .text\n  .balign 16\n"              \
      "  .globl " #name                      \
      "\n"                                   \
      "  .type " #name ", @function\n" #name \
      ":\n"                                  \
      "  endbr64\n"                          \
      "  movq sucl_pmpi_to_" #name           \
      "(%rip), %rax\n"                       \
      "  testq %rax, %rax\n"                 \
      "  jz 1f\n"                            \
      "  jmpq *%rax\n"                       \
      "1: leaq sucl_pmpi_to_" #name          \
      "(%rip), %rax\n"                       \
      "  jmp sucl_pmpi_first\n"              \
      "  .size " #name ", .-" #name "\n");

asm(R"(
  .text
sucl_pmpi_first:
  pushq %rax
  pushq %rdi
  pushq %rsi
  pushq %rdx
  pushq %rcx
  pushq %r8
  pushq %r9
  call sucl_pmpi_choose
  popq %r9
  popq %r8
  popq %rcx
  popq %rdx
  popq %rsi
  popq %rdi
  popq %rax
  jmpq *(%rax)
)");

#elif defined(__aarch64__)

#define SUCL_PMPI_ENTRY(name)                     \
  asm("  .data\n"                                 \
      "sucl_pmpi_to_" #name                       \
      ":\n  .quad 0\n"                            \
      "  .text\n  .balign 16\n"                   \
      "  .globl " #name                           \
      "\n"                                        \
      "  .type " #name ", %function\n" #name      \
      ":\n"                                       \
      "  adrp x16, sucl_pmpi_to_" #name           \
      "\n"                                        \
      "  add x16, x16, :lo12:sucl_pmpi_to_" #name \
      "\n"                                        \
      "  ldr x17, [x16]\n"                        \
      "  cbz x17, sucl_pmpi_first\n"              \
      "  br x17\n"                                \
      "  .size " #name ", .-" #name "\n");

asm(R"(
  .text
sucl_pmpi_first:
  stp x29, x30, [sp, #-96]!
  mov x29, sp
  stp x0, x1, [sp, #16]
  stp x2, x3, [sp, #32]
  stp x4, x5, [sp, #48]
  stp x6, x7, [sp, #64]
  str x16, [sp, #80]
  bl sucl_pmpi_choose
  ldp x0, x1, [sp, #16]
  ldp x2, x3, [sp, #32]
  ldp x4, x5, [sp, #48]
  ldp x6, x7, [sp, #64]
  ldr x16, [sp, #80]
  ldp x29, x30, [sp], #96
  ldr x17, [x16]
  br x17
)");

#endif

#define SUCL_PMPI_MPI_ENTRY(name) SUCL_PMPI_ENTRY(MPI_##name)
#define SUCL_PMPI_PMPI_ENTRY(name) SUCL_PMPI_ENTRY(PMPI_##name)
SUCL_PMPI_FUNCTIONS(SUCL_PMPI_MPI_ENTRY)
SUCL_PMPI_PROFILED(SUCL_PMPI_PMPI_ENTRY)
