/* Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
 * see LICENSE. SPDX-License-Identifier: Apache-2.0 */

/*
 * A backend in one file, in plain C: barrier and broadcast over the out-of-band exchange that the
 * core provides. It needs nothing but <sucl/abi/backend.h>;
 * docs/how-to/write-a-backend.md walks through it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sucl/abi/backend.h>

/* What the backend keeps for the process. The header leaves these structs to the backend. */
struct sucl_state {
  const sucl_core* core;
  uint64_t max_bytes; /* the longest broadcast */
};

struct sucl_backend_comm {
  const sucl_state* state;
  sucl_oob* oob;
  int32_t rank;
  int32_t size;
};

struct sucl_request {
  sucl_operation operation;
  sucl_oob_request* exchange;
  uint64_t bytes;     /* from each rank */
  unsigned char* all; /* of every rank, in rank order */
};

static sucl_status relay_open(const sucl_core* core, const sucl_setting* settings,
                              uint64_t setting_count, sucl_state** state) {
  uint64_t max_bytes = 1 << 20;
  for (uint64_t i = 0; i < setting_count; ++i) {
    char* end = NULL;
    if (strcmp(settings[i].key, "max_bytes") != 0)
      return core->fail(SUCL_ERROR_CONFIGURATION, 0, "backend relay has an unknown setting",
                        "Its only setting is max_bytes.");
    errno = 0;
    max_bytes = strtoull(settings[i].value, &end, 10);
    if (errno != 0 || end == settings[i].value || *end != '\0' || settings[i].value[0] == '-' ||
        max_bytes < 1 || max_bytes > 1 << 30)
      return core->fail(SUCL_ERROR_CONFIGURATION, 0,
                        "max_bytes of backend relay is no number within its range",
                        "Write a whole number from 1 to 1073741824.");
  }
  *state = malloc(sizeof **state);
  if (!*state) return core->fail(SUCL_ERROR_OUT_OF_MEMORY, 0, "no memory", NULL);
  (*state)->core = core;
  (*state)->max_bytes = max_bytes;
  core->log(SUCL_LOG_DEBUG, "relay", "opened");
  return SUCL_SUCCESS;
}

static void relay_close(sucl_state* state) { free(state); }

/* The same answer on every rank: it depends on nothing but the question and the settings. */
static sucl_status relay_query(sucl_state* state, const sucl_query* query,
                               sucl_capability* answer) {
  const int readable = query->memory != SUCL_MEMORY_DEVICE;
  answer->supported = query->kind == SUCL_KIND_BARRIER ||
                      (query->kind == SUCL_KIND_BROADCAST && readable && query->element_size > 0 &&
                       query->element_size <= state->max_bytes);
  answer->flags = 0;
  answer->max_count = query->element_size > 0 ? state->max_bytes / query->element_size : 0;
  return SUCL_SUCCESS;
}

static sucl_status relay_comm_create(sucl_state* state, const sucl_comm_info* info,
                                     sucl_backend_comm** comm) {
  *comm = malloc(sizeof **comm);
  if (!*comm) return state->core->fail(SUCL_ERROR_OUT_OF_MEMORY, 0, "no memory", NULL);
  (*comm)->state = state;
  (*comm)->oob = info->oob;
  (*comm)->rank = info->rank;
  (*comm)->size = info->size;
  return SUCL_SUCCESS;
}

static void relay_comm_destroy(sucl_backend_comm* comm) { free(comm); }

static void release(sucl_request* request) {
  free(request->all);
  free(request);
}

/* Every rank shows its bytes; those of the root are the ones that are wanted. One exchange of a
 * size that every rank knows, started in the order of the posts: nothing more is needed for the
 * exchanges of the ranks to match. */
static sucl_status relay_post(sucl_backend_comm* comm, const sucl_operation* operation,
                              sucl_request** request) {
  const sucl_core* core = comm->state->core;
  const int broadcast = operation->kind == SUCL_KIND_BROADCAST;
  sucl_request* r;
  sucl_status status;
  if (!broadcast && operation->kind != SUCL_KIND_BARRIER)
    return core->fail(SUCL_ERROR_UNSUPPORTED, 0, "relay supports barrier and broadcast only",
                      "Give other kinds another backend in the selection rules.");
  r = calloc(1, sizeof *r);
  if (!r) return core->fail(SUCL_ERROR_OUT_OF_MEMORY, 0, "no memory", NULL);
  r->operation = *operation;
  r->bytes = broadcast ? operation->count * operation->element_size : 0;
  /* Room for a rank's own bytes follows those of all. One byte more, so that it is never null. */
  r->all = malloc(r->bytes * ((uint64_t)comm->size + 1) + 1);
  if (!r->all) {
    release(r);
    return core->fail(SUCL_ERROR_OUT_OF_MEMORY, 0, "no memory for a broadcast",
                      "Lower the setting max_bytes of backend relay.");
  }
  unsigned char* mine = r->all + r->bytes * (uint64_t)comm->size;
  memset(mine, 0, r->bytes);
  if (broadcast && comm->rank == operation->root && r->bytes > 0) {
    const int in_place = (operation->flags & SUCL_FLAG_IN_PLACE) != 0;
    memcpy(mine, in_place ? operation->recv : operation->send, r->bytes);
  }
  status = core->oob_allgather_start(comm->oob, mine, r->all, r->bytes, &r->exchange);
  if (status != SUCL_SUCCESS) {
    release(r);
    return status; /* the core has the details already */
  }
  *request = r;
  return SUCL_SUCCESS;
}

static sucl_status relay_test(sucl_backend_comm* comm, sucl_request* request, int32_t* done) {
  const sucl_operation* operation = &request->operation;
  const sucl_status status = comm->state->core->oob_test(comm->oob, request->exchange, done);
  if (status == SUCL_SUCCESS && !*done) return SUCL_SUCCESS;
  if (status == SUCL_SUCCESS && request->bytes > 0 && comm->rank != operation->root)
    memcpy(operation->recv, request->all + request->bytes * (uint64_t)operation->root,
           request->bytes);
  release(request);
  return status;
}

/* An exchange that a lost peer keeps open may still write to its memory, so that is not freed. */
static void relay_abort(sucl_backend_comm* comm) { (void)comm; }

/* By name: later versions of the contract append fields, and what is not named is null. */
static const sucl_backend relay = {
    .struct_size = sizeof(sucl_backend),
    .abi_major = SUCL_ABI_MAJOR,
    .abi_minor = SUCL_ABI_MINOR,
    .name = "relay",
    .description = "barrier and broadcast over the out-of-band exchange",
    .open = relay_open,
    .close = relay_close,
    .query = relay_query,
    .comm_create = relay_comm_create,
    .comm_destroy = relay_comm_destroy,
    .post = relay_post,
    .test = relay_test,
    .abort = relay_abort,
};

SUCL_ABI_EXPORT const sucl_backend* sucl_backend_entry(uint32_t core_major, uint32_t core_minor);

SUCL_ABI_EXPORT const sucl_backend* sucl_backend_entry(uint32_t core_major, uint32_t core_minor) {
  (void)core_minor; /* this backend needs nothing that came after version 1.0 */
  return core_major == SUCL_ABI_MAJOR ? &relay : NULL;
}
