// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "base/system/library.hpp"

#include "unit/helpers.hpp"

#include <gtest/gtest.h>

#include <elf.h>

#include <cstring>
#include <utility>

// The build passes the paths of its small libraries: SUCL_TEST_LIBRARY offers the function
// sucl_test_answer, SUCL_TEST_LIBRARY_UNDEFINED needs sucl_test_symbol_undefined, and
// SUCL_TEST_LIBRARY_ORPHAN needs libsucl_test_absent.so, which the linker cannot find.

namespace sucl::base {
namespace {

using test::error_of;

std::string refusal(const std::string& path) {
  errc code = errc::success;
  const std::string text = error_of([&] { library::open(path); }, &code);
  EXPECT_EQ(code, errc::unavailable);
  return text;
}

TEST(Library, OffersItsSymbols) {
  const library l = library::open(SUCL_TEST_LIBRARY);
  EXPECT_TRUE(static_cast<bool>(l));
  EXPECT_EQ(l.path(), SUCL_TEST_LIBRARY);
  EXPECT_EQ(l.symbol_as<int (*)()>("sucl_test_answer")(), 42);
}

TEST(Library, MovesItsHandle) {
  library first = library::open(SUCL_TEST_LIBRARY);
  library second = std::move(first);
  EXPECT_FALSE(static_cast<bool>(first));  // NOLINT(bugprone-use-after-move)
  EXPECT_NE(second.symbol("sucl_test_answer"), nullptr);
  library third;
  third = std::move(second);
  EXPECT_NE(third.symbol("sucl_test_answer"), nullptr);
  EXPECT_EQ(error_of([] { library().symbol("f"); }),
            "sucl: cannot find 'f': no library is open [unavailable]. Open the library first.");
}

TEST(Library, NamesTheMissingSymbol) {
  const library l = library::open(SUCL_TEST_LIBRARY);
  EXPECT_EQ(error_of([&] { l.symbol("sucl_test_question"); }),
            "sucl: '" + l.path() +
                "' has no symbol 'sucl_test_question' [unavailable]. It is not the library that "
                "was meant, or of another version: check the configured path.");
}

TEST(Library, SaysThatTheFileIsMissing) {
  test::working_directory here;
  EXPECT_EQ(refusal("./absent.so"),
            "sucl: cannot load './absent.so': No such file or directory [unavailable]. Correct the "
            "path, or build or install the file.");
  EXPECT_EQ(refusal("libsucl_test_nowhere.so.3"),
            "sucl: cannot load 'libsucl_test_nowhere.so.3': no library of this name is on the "
            "linker's search path [unavailable]. Install it, add its directory to LD_LIBRARY_PATH, "
            "or give a full path.");
  EXPECT_EQ(refusal(""),
            "sucl: cannot load a library: its path is empty [unavailable]. Give a path.");
}

TEST(Library, NamesTheLibraryThatItNeeds) {
  const std::string path = SUCL_TEST_LIBRARY_ORPHAN;
  EXPECT_EQ(refusal(path), "sucl: cannot load '" + path +
                               "': it needs the library 'libsucl_test_absent.so', which was not "
                               "found [unavailable]. Install 'libsucl_test_absent.so', or add its "
                               "directory to LD_LIBRARY_PATH.");
}

TEST(Library, NamesTheSymbolThatItNeeds) {
  const std::string path = SUCL_TEST_LIBRARY_UNDEFINED;
  EXPECT_EQ(refusal(path),
            "sucl: cannot load '" + path +
                "': it needs the symbol 'sucl_test_symbol_undefined', which no library offers "
                "[unavailable]. It was built against another version of a library it uses: rebuild "
                "it, or put the matching version on LD_LIBRARY_PATH.");
}

TEST(Library, SaysThatTheFileIsNoLibrary) {
  test::working_directory here;
  const std::string expected =
      "it is not a shared library (no ELF header) [unavailable]. Give the path of the shared "
      "library itself, not of a text file, script or archive.";
  here.write("text.so", "INPUT(libreal.so) and then some more text to be longer than a header\n");
  EXPECT_EQ(refusal("./text.so"), "sucl: cannot load './text.so': " + expected);
  here.write("empty.so", "");
  EXPECT_EQ(refusal("./empty.so"), "sucl: cannot load './empty.so': " + expected);
  std::filesystem::create_directory("folder.so");
  EXPECT_EQ(refusal("./folder.so"),
            "sucl: cannot load './folder.so': it is a directory [unavailable]. Give the path of "
            "the library in it.");
}

TEST(Library, SaysThatItIsForAnotherMachine) {
  std::ifstream original(SUCL_TEST_LIBRARY, std::ios::binary);
  std::string image{std::istreambuf_iterator<char>(original), std::istreambuf_iterator<char>()};
  Elf64_Ehdr header{};
  ASSERT_GT(image.size(), sizeof header);
  std::memcpy(&header, image.data(), sizeof header);
  const int own = header.e_machine;
  header.e_machine = EM_SPARCV9;
  std::memcpy(image.data(), &header, sizeof header);
  test::working_directory here;
  here.write("sparc.so", image);
  EXPECT_EQ(
      refusal("./sparc.so"),
      "sucl: cannot load './sparc.so': it was built for another machine (ELF class 2, machine "
      "43; this process has 2, " +
          std::to_string(own) + ") [unavailable]. Install or build the library for this machine.");
}

// The dynamic linker itself would crash on this one.
TEST(Library, SaysThatTheFileIsCutShort) {
  std::ifstream original(SUCL_TEST_LIBRARY, std::ios::binary);
  const std::string image{std::istreambuf_iterator<char>(original),
                          std::istreambuf_iterator<char>()};
  test::working_directory here;
  for (const std::size_t length : {sizeof(Elf64_Ehdr), std::size_t{200}, std::size_t{1000}}) {
    here.write("half.so", image.substr(0, length));
    EXPECT_EQ(refusal("./half.so"),
              "sucl: cannot load './half.so': the file is cut short [unavailable]. Copy, install "
              "or build it again.");
  }
}

TEST(Library, HandsOnWhatElseTheLinkerSays) {
  const std::string text = refusal("/proc/self/exe");
  EXPECT_NE(text.find("the dynamic linker says: "), std::string::npos) << text;
}

}  // namespace
}  // namespace sucl::base
