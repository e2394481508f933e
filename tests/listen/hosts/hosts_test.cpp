// Programs under the listening library that do to themselves what an unknown thread in them might notice.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "tests/support/command.h"

namespace jitunwind::test {
namespace {

const std::string k_preloaded = "LD_PRELOAD=" LISTEN_SHARED;
const std::string k_by_words = k_preloaded + " JITUNWIND_LISTEN=frames,itt,maps,gdb";

Ended does(const std::string& environment, const std::string& program, const std::string& deed) {
  return run("timeout --signal KILL 60 env " + environment + " " + program + " " + deed);
}

void expect_same(const std::string& environment, const std::string& program, const std::string& deed) {
  const Ended alone = does("", program, deed), heard = does(environment, program, deed);
  EXPECT_NE(alone.status, 99) << "no such deed";
  EXPECT_EQ(heard.status, alone.status) << heard.text;
  EXPECT_EQ(heard.text, alone.text);
}

class Hosts : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Deeds, Hosts,
                         testing::Values("close_all", "have_small_stacks", "run_others", "fork_often", "end_early",
                                         "wait_for_signal", "have_no_processes_more", "have_few_system_calls",
                                         "call_kernel", "end_first_thread", "end_before_another"));

// covers: LS15
TEST_P(Hosts, AreAsTheyAreWithout) { expect_same(k_preloaded, HOST, GetParam()); }
TEST_P(Hosts, AreAsTheyAreWithoutWhereTheyAreFollowed) { expect_same(k_by_words, HOST, GetParam()); }
TEST_P(Hosts, AreAsTheyAreWithoutWhereTheyHaveAList) { expect_same(k_preloaded, HOST_WITH_LIST, GetParam()); }

/// A program that makes no code has no thread of this library's.
TEST(HostsThreads, AreTheirsAloneWhereThereIsNoEngine) {
  expect_same(k_preloaded, HOST, "count_threads");
  expect_same(k_preloaded, HOST, "unshare_users");
  expect_same(k_preloaded + " JITUNWIND_LISTEN=frames,itt", HOST_WITH_LIST, "unshare_users");
}

TEST(HostsThreads, AreOneMoreWhereThereIsAnEngineOrItIsAskedFor) {
  EXPECT_EQ(does("", HOST, "count_threads").text, "1 threads\nexit\n");
  EXPECT_EQ(does(k_preloaded, HOST_WITH_LIST, "count_threads").text, "2 threads\nexit\n");
  EXPECT_EQ(does(k_preloaded, HOST, "tell_libgcc").text, "2 threads\nexit\n");
  EXPECT_EQ(does(k_by_words, HOST, "count_threads").text, "2 threads\nexit\n");
}

}  // namespace
}  // namespace jitunwind::test
