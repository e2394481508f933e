// Large programs as targets, which ./dev prove installs: node, in code that V8 has made and in code without unwind
// information; PostgreSQL, its postmaster and its processes. GDB and elfutils look at the same moment.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tests/listen/written_for_perf.h"
#include "tests/targets/witnesses.h"

namespace jitunwind::test {
namespace {

struct NodeRun {
  const char* name;
  const char* options;
  const char* function;  ///< whose name is told of code made at run time; "": none is
};
std::ostream& operator<<(std::ostream& out, const NodeRun& run) { return out << run.name; }

class Node : public testing::TestWithParam<NodeRun> {};

/// V8 keeps frame pointers and gives unwinders no information about its code, not even its own built-in functions: the
/// walk ends there and reports it. elfutils follows frame pointers, as bold guesses do. GDB takes other words for
/// frames, and is not asked.
TEST_P(Node, EndsWhereV8SaysNothingOrFollowsFramePointers) {
  const TemporaryFolder folder;
  std::ofstream(folder / "deep.js") << R"(
    function inner() { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1e9); return 0; }
    function outer(n) { return n == 0 ? inner() : outer(n - 1) + 1; }
    outer(20);)";
  const Waiting program(std::string("node ") + GetParam().options + " '" + (folder / "deep.js") + "'");
  const SeenAtOnce seen = seen_when_it_waits(program.process(), WithGdb::no, stands_still());
  ASSERT_GE(seen.elfutils.size(), 5u);
  for (const auto& [thread, theirs] : seen.elfutils) {
    const Pcs& ours = seen.ours.at(thread);
    const std::string& why = seen.whys.at(thread);
    if (why == "complete") {
      EXPECT_EQ(ours, theirs);
      continue;
    }
    EXPECT_NE(why.find("no unwind information found"), std::string::npos) << why;
    ASSERT_LT(ours.size(), theirs.size());
    EXPECT_TRUE(std::equal(ours.begin(), ours.end(), theirs.begin()));
    const Pcs& bold = seen.bold.at(thread);
    EXPECT_TRUE(has_all_of(bold, theirs)) << testing::PrintToString(bold) << testing::PrintToString(theirs);
    EXPECT_GE(bold.size(), 25u);
  }
  EXPECT_NE(seen.whys.at(program.process()), "complete");
  std::size_t named = 0;
  const auto target = Target::attach(program.process());
  ASSERT_TRUE(target) << target.error().text();
  for (const Frame& frame : target->walk(target->threads().front(), Guesses::bold))
    named += frame.name().find(GetParam().function) != std::string::npos;
  if (*GetParam().function) {
    EXPECT_EQ(named, 21u);
  }
  remove_written_for_perf(program.process());
}

INSTANTIATE_TEST_SUITE_P(Runs, Node,
                         testing::Values(NodeRun{"Plain", "", ""}, NodeRun{"PerfMap", "--perf-basic-prof", ""},
                                         NodeRun{"PerfMapOfTheInterpreter",
                                                 "--perf-basic-prof --interpreted-frames-native-stack", "outer"}),
                         [](const auto& info) { return std::string(info.param.name); });

/// Runs a server as an unprivileged user, in its own folder.
class Server {
 public:
  Server() {
    EXPECT_EQ(::chmod(folder_.path().c_str(), 0777), 0);
    (void)output_of(as_user("initdb -A trust -N -U tester -D '" + data() + "' >/dev/null"));
    server_.emplace(as_user("postgres -D '" + data() + "' -k '" + data() + "' -h '' -c autovacuum=off"));
  }
  ~Server() {
    ::kill(server_->process(), SIGQUIT);
    for (const pid_t process : processes())
      for (int i = 0; i < 1000 && ::kill(process, 0) == 0 && process != server_->process(); ++i) ::usleep(10'000);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// A command that a client waits for.
  std::string client(const std::string& sql) const {
    return as_user("psql -U tester -h '" + data() + "' -c '" + sql + "' postgres");
  }
  bool answers() const { return std::system((client("select 1") + " >/dev/null 2>&1").c_str()) == 0; }
  /// Returns the postmaster and its children.
  std::vector<pid_t> processes() const {
    const std::string first = std::to_string(server_->process());
    std::vector<pid_t> all{server_->process()};
    std::ifstream children("/proc/" + first + "/task/" + first + "/children");
    for (pid_t child = 0; children >> child;) all.push_back(child);
    return all;
  }

 private:
  std::string data() const { return folder_ / "data"; }
  /// PostgreSQL's programs refuse to run as root.
  static std::string as_user(const std::string& command) {
    const std::string programs = "PATH=" POSTGRES_FOLDER ":$PATH";
    const std::string user =
        ::geteuid() == 0 ? "setpriv --reuid 65534 --regid 65534 --clear-groups --pdeathsig KILL " : "";
    return user + "env " + programs + " " + command;
  }

  TemporaryFolder folder_;
  std::optional<Waiting> server_;
};

TEST(PostgreSql, IsSeenAsByGdbAndElfutils) {
  const Server server;
  for (int i = 0; i < 600 && !server.answers(); ++i) ::usleep(100'000);
  ASSERT_TRUE(server.answers());
  const Waiting client(server.client("select pg_sleep(1000)"));
  // The helpers have begun, and the process that answered before has ended.
  for (std::vector<pid_t> before; before.size() < 6 || server.processes() != before; ::usleep(500'000))
    before = server.processes();
  std::size_t deepest = 0;
  for (const pid_t process : server.processes()) {
    const SeenAtOnce seen = seen_when_it_waits(process, WithGdb::yes, stands_still());
    EXPECT_EQ(seen.elfutils, seen.ours);
    EXPECT_EQ(seen.gdb, seen.ours);
    for (const auto& [thread, why] : seen.whys) EXPECT_EQ(why, "complete") << thread;
    for (const auto& [thread, stack] : seen.ours) deepest = std::max(deepest, stack.size());
  }
  EXPECT_GE(deepest, 15u) << "that which sleeps in SQL";
}

}  // namespace
}  // namespace jitunwind::test
