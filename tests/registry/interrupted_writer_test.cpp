// A signal handler interrupts a writer of its own thread at every single instruction: lookups are right, the list is
// whole, and further writers are refused. Another thread retires procedures while a writer stands at any instruction.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <thread>

#include "jitunwind/builders/registers_x86_64.h"
#include "jitunwind/builders/registration.h"
#include "tests/builders/registered_code.h"
#include "tests/registry/every_instruction.h"
#include "tests/registry/procedures.h"

namespace {

using namespace jitunwind;
using namespace registry_test;

constexpr std::uint64_t k_written_code = 0x20000000;

/// Keeps the first mistake; handlers must not allocate.
struct Verdict {
  const char* text = nullptr;
  std::uint64_t detail = 0;
  void expect(bool right, const char* what, std::uint64_t at = 0) noexcept {
    if (right || text != nullptr) return;
    text = what;
    detail = at;
  }
};

/// The possible answers of lookups of one address while an operation runs: the answer before it, until the answer after
/// it is seen for the first time. A batch may show its procedures one by one.
struct Watched {
  std::uint64_t pc;
  const unw_dyn_info_t* before = nullptr;
  const unw_dyn_info_t* after = nullptr;
  bool changed = false;
};

struct Scene {
  std::array<Watched, 24> watched{};
  std::size_t count = 0;
  unw_dyn_info_t spare = procedure(k_written_code + 0x5000, 32);
  std::size_t lookups = 0;
  std::size_t visits = 0;
  std::size_t refused = 0;
  std::size_t list_length_limit = 1000;
  Verdict verdict;
};

void look_up_everything(Scene& scene) noexcept {
  for (std::size_t i = 0; i < scene.count; ++i) {
    Watched& w = scene.watched[i];
    const unw_dyn_info_t* found = lookup(w.pc);
    ++scene.lookups;
    if (found == w.after) {
      w.changed = w.changed || w.after != w.before;
    } else {
      scene.verdict.expect(found == w.before && !w.changed, "lookup", w.pc);
    }
  }
}

void follow_list(Scene& scene) noexcept {
  std::size_t length = 0;
  std::array<bool, 24> seen{};
  for (const unw_dyn_info_t* info = procedure_list()->first; info != nullptr; info = info->next) {
    if (++length > scene.list_length_limit) break;
    for (std::size_t i = 0; i < scene.count; ++i) seen[i] = seen[i] || info == scene.watched[i].before;
  }
  scene.verdict.expect(length <= scene.list_length_limit, "list does not end");
  for (std::size_t i = 0; i < scene.count; ++i) {
    const Watched& w = scene.watched[i];
    if (w.before != nullptr && w.before == w.after) scene.verdict.expect(seen[i], "list lost a procedure", w.pc);
  }
}

void try_to_write(Scene& scene) noexcept {
  const Status registered = register_procedure(&scene.spare);
  const auto refused = [](const auto& result) { return result.error().code == ErrorCode::in_signal_handler; };
  if (registered) {
    scene.verdict.expect(lookup(scene.spare.start_ip) == &scene.spare, "registered in a handler, not found");
    scene.verdict.expect(cancel_procedure(&scene.spare).has_value(), "cancel in a handler");
  } else {
    ++scene.refused;
    scene.verdict.expect(refused(registered), "register in a handler");
    const Status cancelled = cancel_procedure(&scene.spare);
    scene.verdict.expect(!cancelled && refused(cancelled), "cancel in a handler");
    const auto retired = retire_procedures(std::array{&scene.spare});
    scene.verdict.expect(!retired && refused(retired), "retire in a handler");
  }
}

void visit(void* argument) noexcept {
  Scene& scene = *static_cast<Scene*>(argument);
  ++scene.visits;
  look_up_everything(scene);
  follow_list(scene);
  try_to_write(scene);
}

class InterruptedWriter : public testing::Test {
 protected:
  /// Addresses to watch from the present answers to those of `after`.
  void watch(std::initializer_list<std::uint64_t> addresses) {
    scene_.count = 0;
    for (const std::uint64_t pc : addresses) scene_.watched[scene_.count++] = {pc, lookup(pc), nullptr};
  }
  void expect_after(std::initializer_list<const unw_dyn_info_t*> answers) {
    std::size_t i = 0;
    for (const unw_dyn_info_t* answer : answers) scene_.watched[i++].after = answer;
  }
  template <class Operation>
  void run(const char* name, Operation&& operation) {
    const std::size_t instructions = every_.run(visit, &scene_, operation);
    EXPECT_EQ(scene_.verdict.text, nullptr)
        << name << ": " << scene_.verdict.text << std::hex << " at 0x" << scene_.verdict.detail;
    for (std::size_t i = 0; i < scene_.count; ++i)
      EXPECT_EQ(lookup(scene_.watched[i].pc), scene_.watched[i].after) << i;
    EXPECT_GT(scene_.refused, 0u) << "no handler has seen the writer at work";
    std::printf("%-34s %5zu instructions, %6zu lookups, writers refused %5zu times\n", name, instructions,
                scene_.lookups, scene_.refused);
    total_instructions_ += instructions;
    total_lookups_ += scene_.lookups;
    scene_.lookups = scene_.refused = scene_.visits = 0;
    scene_.verdict = {};
  }

  EveryInstruction every_;
  Scene scene_;
  std::size_t total_instructions_ = 0;
  std::size_t total_lookups_ = 0;
};

// covers: SF08
TEST_F(InterruptedWriter, LookupsAreRightAtEveryInstruction) {
  const std::uint64_t c = k_written_code;
  unw_dyn_info_t below = procedure(c, 0x40), stays = procedure(c + 0x40, 0x40), above = procedure(c + 0x80, 0x40);
  unw_dyn_info_t old = procedure(c + 0xc0, 0x80);     // two cells
  unw_dyn_info_t fresh = procedure(c + 0xc0, 0x80);   // over it
  unw_dyn_info_t wide = procedure(c - 0x100, 0x400);  // over all, another size class
  unw_dyn_info_t far = procedure(c + (std::uint64_t{1} << 40), 0x2000);
  const std::uint64_t f = far.start_ip;
  const auto all = {c, c + 0x40, c + 0x80, c + 0xc0, c + 0x100, c + 0x13f, c + 0x140, f};
  scene_.spare.start_ip = c + 0x20000;  // so that nothing below sees it
  scene_.spare.end_ip = c + 0x20020;
  run("first registration, new tables", [&] { (void)register_procedure(&stays); });
  ASSERT_EQ(lookup(c + 0x40), &stays);

  watch(all), expect_after({&below, &stays, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr});
  run("into a chain", [&] { (void)register_procedure(&below); });
  watch(all), expect_after({&below, &stays, &above, &old, &old, &old, nullptr, &far});
  run("batch, two cells, new tables", [&] { (void)register_procedures(std::array{&above, &old, &far}); });
  watch(all), expect_after({&below, &stays, &above, &fresh, &fresh, &fresh, nullptr, &far});
  run("over another", [&] { (void)register_procedure(&fresh); });
  watch(all), expect_after({&below, &stays, &above, &fresh, &fresh, &fresh, nullptr, &far});
  run("refused: twice", [&] { (void)register_procedure(&fresh); });
  watch(all), expect_after({&wide, &wide, &wide, &wide, &wide, &wide, &wide, &far});
  run("over all, new size class", [&] { (void)register_procedure(&wide); });
  watch(all), expect_after({&below, &stays, &above, &fresh, &fresh, &fresh, nullptr, &far});
  run("cancel, head of the list", [&] { (void)cancel_procedure(&wide); });
  watch(all), expect_after({&below, &stays, &above, &fresh, &fresh, &fresh, nullptr, &far});
  run("cancel of one below another", [&] { (void)cancel_procedure(&old); });
  watch(all), expect_after({&below, &stays, &above, nullptr, nullptr, nullptr, nullptr, &far});
  run("cancel, two cells", [&] { (void)cancel_procedure(&fresh); });
  watch(all), expect_after({nullptr, &stays, nullptr, nullptr, nullptr, nullptr, nullptr, &far});
  run("retire of a batch", [&] { (void)retire_procedures(std::array{&below, &above}); });
  watch(all), expect_after({nullptr, &stays, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr});
  run("cancel of a batch", [&] { (void)cancel_procedures(std::array{&far}); });
  watch(all), expect_after({nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr});
  run("cancel, last one", [&] { (void)cancel_procedure(&stays); });

  // These nodes belonged to others before.
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(register_procedure(&below));
    ASSERT_TRUE(cancel_procedure(&below));
  }
  ASSERT_TRUE(register_procedures(std::array{&stays, &above}));
  watch(all), expect_after({&below, &stays, &above, nullptr, nullptr, nullptr, nullptr, nullptr});
  run("register, node used before", [&] { (void)register_procedure(&below); });
  watch(all), expect_after({nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr});
  run("cancel of all", [&] { (void)cancel_procedures(std::array{&above, &below, &stays}); });

  // There are so many places that memory of the first is given back.
  const auto place = [&](std::uint64_t i) { return c + (i << 22); };
  ASSERT_TRUE(register_procedure(&stays));
  std::uint64_t i = 1;
  for (; i < 300; ++i) {
    far = procedure(place(i), 16);
    ASSERT_TRUE(register_procedure(&far) && cancel_procedure(&far));
  }
  for (const auto end = i + 4; i < end; ++i) {
    far = procedure(place(i), 16);
    ASSERT_TRUE(register_procedure(&far));
    watch({c + 0x40, place(i), place(i - 130), place(i - 129), place(i - 128), place(i - 127), place(i - 126)});
    expect_after({&stays, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr});
    run("cancel, memory given back", [&] { (void)cancel_procedure(&far); });
  }
  ASSERT_TRUE(cancel_procedure(&stays));
  std::printf("interrupted at %zu instructions, %zu lookups in handlers, all answers allowed\n", total_instructions_,
              total_lookups_);
}

// A walk may meet a procedure of marks while these are recorded, registered or cancelled: it has its row, or none.
TEST(InterruptedMarks, HaveTheirRowOrNoneAtEveryInstruction) {
  struct Rows {
    test::RegisteredCode registered;
    std::size_t rows = 0, without = 0;
    Verdict verdict;
    void look_up() noexcept {
      MemoryWindow window;
      Lookup lookup(registered.space(), CodeAddress::interrupted(k_written_code + 5), window);
      FrameRow row;
      const Found found = registered.space().find_row(lookup, row);
      if (!found || !*found) return verdict.expect(found.has_value(), "error"), void(++without);
      ++rows;
      verdict.expect(row.cfa.kind == CfaRule::Kind::offset && row.cfa.offset == 48, "row", rows);
    }
  } rows;
  EveryInstruction every;
  for (int times = 0; times < 2; ++times)
    every.run([](void* r) { static_cast<Rows*>(r)->look_up(); }, &rows,
              [] {
                using namespace x86_64;
                Marks marks;
                marks.push({0, 1}, rbx).allocate({1, 5}, 32).deallocate({-6, -2}, 32).pop({-2, -1}, rbx);
                auto live = register_code(marks, {.start = k_written_code, .size = 64, .name = "marked"});
                if (live) (void)live->cancel();
              });
  EXPECT_EQ(rows.verdict.text, nullptr) << rows.verdict.text << " " << rows.verdict.detail;
  EXPECT_GT(rows.rows, 100u);
  EXPECT_GT(rows.without, 100u);
  std::printf("%zu lookups with the row, %zu without\n", rows.rows, rows.without);
}

// A lookup that is disturbed behind each of its instructions: the procedure that it looks for is replaced, in the same
// cell, by one of another or the same size class. The lookup ends, and its answer was the newest at some moment.
struct Disturbance {
  std::vector<unw_dyn_info_t> infos;
  std::vector<RetireTicket> tickets;
  std::size_t current = 0;
  Verdict verdict;

  explicit Disturbance(std::size_t most) : infos(most) { tickets.reserve(most); }

  void replace() noexcept {
    if (current + 1 == infos.size()) return;
    constexpr std::array<std::uint64_t, 3> k_sizes{16, 300, 16};
    infos[current + 1] = procedure(k_written_code, k_sizes[current % 3]);
    verdict.expect(register_procedure(&infos[current + 1]).has_value(), "register in a handler", current);
    const auto ticket = retire_procedures(std::array{&infos[current]});
    verdict.expect(ticket.has_value(), "retire in a handler", current);
    if (ticket) tickets.push_back(*ticket);
    ++current;
  }
};

TEST(InterruptedLookup, EndsThoughEveryInstructionIsDisturbed) {
  EveryInstruction every;
  Disturbance disturbance(100'000);
  disturbance.infos[0] = procedure(k_written_code, 16);
  ASSERT_TRUE(register_procedure(&disturbance.infos[0]));
  std::size_t longest = 0, lookups = 0;
  for (; lookups < 20; ++lookups) {
    const std::size_t oldest = disturbance.current;
    std::optional<ProcedureHold> hold;
    const std::size_t instructions = every.run([](void* d) { static_cast<Disturbance*>(d)->replace(); }, &disturbance,
                                               [&] { hold.emplace(k_written_code + 3); });
    ASSERT_EQ(disturbance.verdict.text, nullptr) << disturbance.verdict.text << disturbance.verdict.detail;
    ASSERT_NE(hold->info(), nullptr) << "lookup " << lookups;
    const auto found = static_cast<std::size_t>(hold->info() - disturbance.infos.data());
    EXPECT_GE(found, oldest);
    EXPECT_TRUE(found == disturbance.current || !reclaimed(disturbance.tickets[found])) << "held, but given back";
    longest = std::max(longest, instructions);
  }
  ASSERT_LT(disturbance.current + 1, disturbance.infos.size()) << "a lookup did not end while it was disturbed";
  std::printf("%zu lookups, the longest had %zu instructions, each followed by a replacement\n", lookups, longest);
  EXPECT_LT(longest, 5000u);
  ASSERT_TRUE(cancel_procedure(&disturbance.infos[disturbance.current]));
  for (const RetireTicket& ticket : disturbance.tickets) ASSERT_TRUE(reclaimed(ticket));
  EXPECT_TRUE(listed().empty());
}

// Here memory is given back around the lookup.
TEST(InterruptedLookup, EndsThoughMemoryIsGivenBackBehindEveryInstruction) {
  struct MovingAbout {
    std::uint64_t moves = 0;
    Verdict verdict;
    void move() noexcept {
      unw_dyn_info_t info = procedure(k_written_code + ((1 + moves++ % 600) << 21), 16);
      verdict.expect(register_procedure(&info) && cancel_procedure(&info), "move in a handler", moves);
    }
  };
  EveryInstruction every;
  MovingAbout moving;
  unw_dyn_info_t stays = procedure(k_written_code, 16);
  ASSERT_TRUE(register_procedure(&stays));
  for (const std::uint64_t pc : {k_written_code + 3, k_written_code + 0x1000}) {
    std::optional<ProcedureHold> hold;
    const std::size_t instructions =
        every.run([](void* m) { static_cast<MovingAbout*>(m)->move(); }, &moving, [&] { hold.emplace(pc); });
    ASSERT_EQ(moving.verdict.text, nullptr) << moving.verdict.text << moving.verdict.detail;
    EXPECT_EQ(hold->info(), pc == k_written_code + 3 ? &stays : nullptr);
    std::printf("%zu instructions\n", instructions);
    EXPECT_LT(instructions, 5000u);
  }
  ASSERT_TRUE(cancel_procedure(&stays));
}

// A collector stops every other thread wherever it is, one of them in a writer. It retires procedures and reuses their
// code; lookups and the list are right.
class World {
 public:
  World() : collector_([this] { collect(); }) {}
  ~World() {
    give(k_quit);
    collector_.join();
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Stops the calling thread while `work` runs on the other one.
  void stop_and(void (*work)(void*), void* argument) noexcept {
    work_ = work;
    argument_ = argument;
    give(k_work);
    order_.wait(k_work);
  }
  static void stop_here(void* world) noexcept {
    auto* self = static_cast<World*>(world);
    self->stop_and(self->plan_, self->plan_argument_);
  }
  void plan(void (*work)(void*), void* argument) {
    plan_ = work;
    plan_argument_ = argument;
  }

 private:
  enum Order { k_idle, k_work, k_quit };

  void give(int order) noexcept {
    order_.store(order);
    order_.notify_one();
  }
  void collect() {
    for (;;) {
      order_.wait(k_idle);
      if (order_.load() == k_quit) return;
      work_(argument_);
      give(k_idle);
    }
  }

  std::atomic<int> order_{k_idle};
  void (*work_)(void*) = nullptr;
  void* argument_ = nullptr;
  void (*plan_)(void*) = nullptr;
  void* plan_argument_ = nullptr;
  std::thread collector_;
};

/// Procedures on both sides of the writer's procedure. Each stop retires the nearest remaining one on each side, so
/// that the writer's place in the list is always between, before or behind retired ones.
struct Collection {
  static constexpr std::size_t k_side = 120;
  static constexpr std::size_t k_busy = k_side;
  std::vector<unw_dyn_info_t> infos;  // oldest first
  std::array<bool, 2 * k_side + 1> gone{};
  std::size_t older = k_side, newer = k_side + 1;  // all between them are retired
  std::vector<RetireTicket> tickets;
  std::size_t without_lock = 0;
  Verdict verdict;

  Collection() {
    for (std::size_t i = 0; i <= 2 * k_side; ++i) infos.push_back(procedure(k_written_code + 0x40 * i, 0x40));
  }

  void retire() {
    std::vector<unw_dyn_info_t*> batch;
    if (older > 0) gone[--older] = true, batch.push_back(&infos[older]);
    if (newer < infos.size()) gone[newer] = true, batch.push_back(&infos[newer++]);
    const auto ticket = retire_procedures(batch);
    verdict.expect(ticket.has_value() && ticket->skipped == 0, "retire failed");
    if (!ticket) return;
    tickets.push_back(*ticket);
    without_lock += reclaimed(*ticket) ? 0 : 1;
    check();
  }

  void check() {
    auto list = listed();
    std::erase_if(list, [this](const auto* info) { return info < infos.data() || info > &infos.back(); });
    auto at = list.begin();
    for (std::size_t i = infos.size(); i-- > 0;) {
      const unw_dyn_info_t* found = lookup(infos[i].start_ip);
      const bool next_in_list = at != list.end() && *at == &infos[i];
      at += next_in_list ? 1 : 0;
      if (i == k_busy) continue;
      verdict.expect(found == (gone[i] ? nullptr : &infos[i]), "lookup", i);
      verdict.expect(next_in_list == !gone[i], gone[i] ? "retired, but in the list" : "not in its place in the list",
                     i);
    }
    verdict.expect(at == list.end(), "more in the list");
  }
};

struct Scenario {
  const char* name;
  bool busy_before;   // the busy one is registered, between its neighbours in the list
  std::size_t newer;  // neighbours on its newer side
  void (*operation)(unw_dyn_info_t* busy);
};

/// There are fewer stops in a window than neighbours on a side. Reaching a window takes a trap for each instruction
/// before it.
constexpr std::size_t k_window = 100;

/// Runs the writer to the instruction `first`; there and at the next k_window ones the world stops for a collection.
/// Returns the number of stops.
std::size_t collect_from(const Scenario& scenario, std::size_t first, std::size_t& without_lock) {
  EveryInstruction every;
  World world;
  Collection collection;
  auto& infos = collection.infos;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    const bool registered = i < Collection::k_busy || (i == Collection::k_busy && scenario.busy_before) ||
                            (i > Collection::k_busy && i <= Collection::k_busy + scenario.newer);
    if (registered) (void)register_procedure(&infos[i]);
    collection.gone[i] = !registered;
  }
  if (scenario.newer == 0) collection.newer = infos.size();
  world.plan([](void* c) { static_cast<Collection*>(c)->retire(); }, &collection);
  (void)every.run(
      World::stop_here, &world, [&] { scenario.operation(&infos[Collection::k_busy]); }, first, first + k_window);
  const std::size_t stops = collection.tickets.size();
  collection.check();
  EXPECT_EQ(collection.verdict.text, nullptr) << scenario.name << " from instruction " << first << ": "
                                              << collection.verdict.text << " " << collection.verdict.detail;
  for (const RetireTicket ticket : collection.tickets) EXPECT_TRUE(reclaimed(ticket));
  for (auto& info : infos) (void)cancel_procedure(&info);
  EXPECT_TRUE(listed().empty());
  EXPECT_EQ(registry_statistics().registered, 0u);
  without_lock += collection.without_lock;
  return stops;
}

TEST(SuspendedWriter, RetireWorksWhereverItStands) {
  static unw_dyn_info_t elsewhere = procedure(k_written_code + 0x100000, 0x200);
  static std::array<unw_dyn_info_t, 2> more{procedure(k_written_code + 0x200000, 16),
                                            procedure(k_written_code + 0x200010, 16)};
  constexpr auto k_side = Collection::k_side;
  const std::array scenarios{
      Scenario{"register, refused", true, k_side, [](unw_dyn_info_t* busy) { (void)register_procedure(busy); }},
      Scenario{"register as the newest", false, 0, [](unw_dyn_info_t* busy) { (void)register_procedure(busy); }},
      Scenario{"cancel of the newest", true, 0, [](unw_dyn_info_t* busy) { (void)cancel_procedure(busy); }},
      Scenario{"cancel between others", true, k_side, [](unw_dyn_info_t* busy) { (void)cancel_procedure(busy); }},
      Scenario{"retire between others", true, k_side,
               [](unw_dyn_info_t* busy) { (void)retire_procedures(std::array{busy}); }},
      Scenario{"batch, register and cancel", false, 0,
               [](unw_dyn_info_t*) {
                 const std::array batch{&elsewhere, &more[0], &more[1]};
                 (void)register_procedures(batch), (void)cancel_procedures(batch);
               }},
  };
  std::size_t total = 0;
  for (const Scenario& scenario : scenarios) {
    std::size_t stops = 0, without_lock = 0;
    for (std::size_t first = 0;; first += k_window / 2) {
      const std::size_t here = collect_from(scenario, first, without_lock);
      if (here == 0 || HasFailure()) break;
      stops += here;
    }
    ASSERT_FALSE(HasFailure()) << scenario.name;
    std::printf("%-28s %5zu collections, the writer had the lock at %5zu of them\n", scenario.name, stops,
                without_lock);
    total += stops;
  }
  std::printf("%zu collections beside a suspended writer: lookups and list right at each\n", total);
}

}  // namespace
