# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
#
# sucl_embed_kernels(TARGET HEADER...): puts the text of headers with kernels into a program, for
# <sucl/kernels.hpp>. Headers are named as the sources include them, relative to the current folder
# or as FOLDER:NAME. Where a SYCL compiler compiles the program nothing is to be done.
function(sucl_embed_kernels target)
  if(NOT SUCL_SYCL STREQUAL "pip")
    return()
  endif()
  set(text "namespace sucl::kernels {
struct file {
  const char* name;
  const char* text;
};
extern const file embedded_files[] __attribute__((visibility(\"hidden\")));
const file embedded_files[] = {
")
  foreach(header IN LISTS ARGN)
    set(folder "${CMAKE_CURRENT_SOURCE_DIR}")
    set(name "${header}")
    if(header MATCHES "^(.*):(.*)$")
      set(folder "${CMAKE_MATCH_1}")
      set(name "${CMAKE_MATCH_2}")
    endif()
    cmake_path(ABSOLUTE_PATH folder)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${folder}/${name}")
    file(READ "${folder}/${name}" content)
    string(APPEND text "{\"${name}\", R\"sucl_text(${content})sucl_text\"},\n")
  endforeach()
  string(APPEND text "{nullptr, nullptr}};\n}  // namespace sucl::kernels\n")
  set(source "${CMAKE_CURRENT_BINARY_DIR}/${target}_kernels.cpp")
  file(WRITE "${source}.new" "${text}")
  file(COPY_FILE "${source}.new" "${source}" ONLY_IF_DIFFERENT)
  # It declares what the headers of SuCL do, so it goes with no source that includes them.
  set_source_files_properties("${source}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${target} PRIVATE "${source}")
endfunction()
