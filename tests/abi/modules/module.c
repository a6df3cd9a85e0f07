/* Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
 * see LICENSE. SPDX-License-Identifier: Apache-2.0 */

/* A backend that does nothing, and variants of it that are broken in one way each. */
#include <sucl/abi/backend.h>

#ifndef SUCL_TEST_NAME
#define SUCL_TEST_NAME "nothing"
#endif
#ifndef SUCL_TEST_MAJOR
#define SUCL_TEST_MAJOR SUCL_ABI_MAJOR
#endif
#ifndef SUCL_TEST_MINOR
#define SUCL_TEST_MINOR SUCL_ABI_MINOR
#endif
#ifndef SUCL_TEST_SIZE
#define SUCL_TEST_SIZE sizeof(struct table)
#endif
#ifndef SUCL_TEST_POST
#define SUCL_TEST_POST post
#endif
#ifndef SUCL_TEST_ENTRY
#define SUCL_TEST_ENTRY sucl_backend_entry
#endif
#ifndef SUCL_TEST_RESULT
#define SUCL_TEST_RESULT &value.known
#endif

/* Opened and not yet closed, for the test to look at. */
SUCL_ABI_EXPORT int sucl_test_opened = 0;

struct sucl_state {
  int unused;
};

static struct sucl_state the_state;

#ifdef SUCL_TEST_DEPENDS
int sucl_test_absent(void);
#endif

static sucl_status open_it(const sucl_core* core, const sucl_setting* settings, uint64_t count,
                           sucl_state** state) {
#ifdef SUCL_TEST_DEPENDS
  (void)sucl_test_absent();
#endif
#ifdef SUCL_TEST_SILENT
  (void)core;
  (void)settings;
  (void)count;
  (void)state;
  return SUCL_ERROR_NATIVE;
#else
  if (count > 0) return core->fail(SUCL_ERROR_UNAVAILABLE, 77, settings[0].key, settings[0].value);
  *state = &the_state;
  ++sucl_test_opened;
  return SUCL_SUCCESS;
#endif
}

static void close_it(sucl_state* state) {
  (void)state;
  --sucl_test_opened;
}

static sucl_status query(sucl_state* state, const sucl_query* query, sucl_capability* answer) {
  (void)state;
  (void)query;
  answer->supported = 0;
  return SUCL_SUCCESS;
}

static sucl_status create(sucl_state* state, const sucl_comm_info* info, sucl_backend_comm** comm) {
  (void)state;
  (void)info;
  *comm = 0;
  return SUCL_SUCCESS;
}

static void destroy(sucl_backend_comm* comm) { (void)comm; }

static inline sucl_status post(sucl_backend_comm* comm, const sucl_operation* operation,
                               sucl_request** request) {
  (void)comm;
  (void)operation;
  *request = 0;
  return SUCL_SUCCESS;
}

static sucl_status test(sucl_backend_comm* comm, sucl_request* request, int32_t* done) {
  (void)comm;
  (void)request;
  *done = 1;
  return SUCL_SUCCESS;
}

static void abort_it(sucl_backend_comm* comm) { (void)comm; }

/* With SUCL_TEST_NEWER, the table of a later version, which has grown. */
struct table {
  sucl_backend known;
#ifdef SUCL_TEST_NEWER
  void (*appended)(void);
#endif
};

static const struct table value = {
    {SUCL_TEST_SIZE,
     SUCL_TEST_MAJOR,
     SUCL_TEST_MINOR,
     0,
     SUCL_TEST_NAME,
     "a test's backend",
     open_it,
     close_it,
     query,
     create,
     destroy,
     SUCL_TEST_POST,
     test,
     abort_it,
     0,
     0,
     0,
     0,
     0,
     0},
#ifdef SUCL_TEST_NEWER
    0,
#endif
};

SUCL_ABI_EXPORT const sucl_backend* SUCL_TEST_ENTRY(uint32_t core_major, uint32_t core_minor);

SUCL_ABI_EXPORT const sucl_backend* SUCL_TEST_ENTRY(uint32_t core_major, uint32_t core_minor) {
  (void)core_major;
  (void)core_minor;
  return SUCL_TEST_RESULT;
}
