// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/system/file.hpp"
#include "base/config/config.hpp"
#include "base/system/library.hpp"

#include "unit/helpers.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>

namespace sucl::test {
namespace {

using base::read_regular_file;

TEST(file, reads_what_is_there) {
  working_directory here;
  for (const std::string& text :
       {std::string(), std::string("one\0two", 7), std::string(std::size_t{200} << 10, 'x')}) {
    here.write("file", text);
    const auto got = read_regular_file("file");
    EXPECT_EQ(got.problem, "");
    EXPECT_EQ(got.text, text);
  }
  EXPECT_NE(read_regular_file("/proc/self/maps").text, "");  // its size is said to be 0
  EXPECT_EQ(read_regular_file("/dev/null").problem, "");
}

TEST(file, refuses_what_is_no_regular_file) {
  working_directory here;
  ASSERT_EQ(::mkfifo("pipe", 0600), 0);
  EXPECT_EQ(read_regular_file("absent").problem, "No such file or directory");
  EXPECT_EQ(read_regular_file(".").problem, "it is a directory");
  EXPECT_EQ(read_regular_file("pipe").problem, "it is a pipe, not a regular file");
  EXPECT_EQ(read_regular_file("/dev/zero").problem,
            "it is a device or a socket, not a regular file");
}

TEST(file, refuses_too_much_before_it_is_read) {
  working_directory here;
  here.write("large", "");
  ASSERT_EQ(::truncate("large", off_t{1} << 40), 0);
  EXPECT_EQ(read_regular_file("large").problem,
            "it has 1099511627776 bytes, more than the 64Mi that are read");
  here.write("small", "12345");
  EXPECT_EQ(read_regular_file("small", 5).text, "12345");
  EXPECT_EQ(read_regular_file("small", 4).problem, "it has 5 bytes, more than the 4 that are read");
  EXPECT_EQ(read_regular_file("/proc/self/maps", 4).problem,
            "it has more than the 4 that are read");
}

TEST(file, a_configuration_that_is_a_pipe_is_an_error) {
  working_directory here;
  ASSERT_EQ(::mkfifo("sucl.toml", 0600), 0);
  EXPECT_EQ(
      error_of([] { base::load_config("", {}); }),
      "sucl: cannot read the configuration file 'sucl.toml' given by the working directory: "
      "it is a pipe, not a regular file [configuration]. Correct the path, or leave it out to "
      "use sucl.toml in the working directory.");
  EXPECT_NE(error_of([] { base::library::open("./sucl.toml"); }).find("no ELF header"),
            std::string::npos);
}

TEST(file, a_configuration_that_is_found_names_no_library) {
  working_directory here;
  for (const char* text : {"[mpi]\nmodule = \"./evil.so\"", "[backends.evil]\npath = \"./evil.so\"",
                           "[backends.nccl]\nlibrary = \"./evil.so\""}) {
    here.write("sucl.toml", text);
    errc code = errc::success;
    const std::string message = error_of([] { base::load_config("", {}); }, &code);
    EXPECT_EQ(code, errc::configuration) << text;
    EXPECT_NE(message.find("names a library to load, which a file that is found in the working "
                           "directory may not do"),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("sucl.toml:2:"), std::string::npos) << message;
    EXPECT_EQ(error_of([] { base::load_config("sucl.toml", {}); }), "");
    EXPECT_EQ(error_of([] { base::load_config("", {{"SUCL_CONFIG", "./sucl.toml"}}); }), "");
  }
  here.write("sucl.toml", "[backends.path]\nenabled = true\n[backends.nccl]\nenabled = false");
  EXPECT_EQ(error_of([] { base::load_config("", {{"SUCL_BACKEND_MINE_PATH", "./mine.so"}}); }), "");
}

}  // namespace
}  // namespace sucl::test
