// Mistakes in sizes, registers, regions, rows and handlers, each with all that its author is told.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <typeinfo>

#include "tests/builders/mistake.h"

namespace jitunwind {
namespace {

using namespace x86_64;

constexpr std::int64_t k_most = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t k_least = std::numeric_limits<std::int64_t>::min();

Builder pushing_rbx() { return in_47_bytes().push({0, 1}, rbx).pop({-2, -1}, rbx); }
FrameDecision pass(const PassedFrame&) { return FrameDecision::pass(); }

const Mistake k_mistakes[] = {
    // Sizes and places.
    {"SizeOfHalfTheAddresses", describe().push({0, 1}, rbx).pop({-2, -1}, rbx).size(std::uint64_t{1} << 63),
     "size(): E_RANGE: no procedure is so long\n"},
    {"SizeOfAllAddresses", describe().push({0, 1}, rbx).pop({-2, -1}, rbx).size(~std::uint64_t{0}),
     "size(): E_RANGE: no procedure is so long\n"},
    {"SizeZero", describe().push({0, 1}, rbx).pop({-2, -1}, rbx).size(0),
     "push({0, 1}, rbx): E_WHEN: behind the end of the procedure, which has 0 bytes\n"},
    {"EndsInFrontOfItsBegin", in_47_bytes().push({5, 2}, rbx).pop({-2, -1}, rbx),
     "push({5, 2}, rbx): E_RANGE: no bytes between begin and end\n"},
    {"EndsInFrontOfItsBeginAtTheEnd", in_47_bytes().push({0, 1}, rbx).pop({-1, -2}, rbx),
     "pop({-1, -2}, rbx): E_RANGE: no bytes between begin and end\n"},
    {"LongerThanAnyInstructionAndOverOthers",
     in_47_bytes().push({0, 32}, rbx).push({5, 6}, r12).pop({-4, -2}, r12).pop({-2, -1}, rbx),
     "push({5, 6}, r12): E_SAME_BYTES: these bytes are those of push({0, 32}, rbx)\n"},
    {"RestoreFarAway", pushing_rbx().remember().restore({std::int64_t{1} << 40, (std::int64_t{1} << 40) + 1}),
     "restore({1099511627776, 1099511627777}): E_RANGE: code offset beyond 2 GiB\n"},
    {"RestoreWithoutBytes",
     in_47_bytes().push({0, 1}, rbx).remember().pop({5, 6}, rbx).restore({7, 6}).pop({-2, -1}, rbx),
     "restore({7, 6}): E_RANGE: no bytes between begin and end\n"},

    // Amounts.
    {"AllocateNegative", in_47_bytes().allocate({0, 4}, -16).deallocate({-5, -1}, -16),
     "allocate({0, 4}, -16): E_SP_HIGH: stack pointer raised above its value at entry\n"},
    {"AllocateMost", in_47_bytes().allocate({0, 4}, k_most),
     "allocate({0, 4}, 9223372036854775807): E_ADD_ALIGN: not a multiple of 8 bytes\n"
     "allocate({0, 4}, 9223372036854775807): E_SP_HIGH: stack pointer raised above its value at entry\n"
     "region 0, offset +2f: W_UNBALANCED: the last region ends with the frame still allocated\n"},
    {"AllocateLeast", in_47_bytes().allocate({0, 4}, k_least),
     "allocate({0, 4}, -9223372036854775808): E_SP_LOST: SP relation lost and no frame pointer\n"
     "region 0, offset +2f: W_UNBALANCED: the last region ends with the frame still allocated\n"},
    {"EnterNegative", in_47_bytes().enter({0, 4}, -16).leave({-2, -1}),
     "enter({0, 4}, -16): E_SP_HIGH: stack pointer raised above its value at entry; behind an early return the frame "
     "is there again: remember() in front of its epilogue, restore() with its ret\n"},
    {"CalleePopsWhatIsNotThere", in_47_bytes().push({0, 1}).callee_pops({1, 3}, 16).pop({-2, -1}),
     "callee_pops({1, 3}, 16): E_SP_HIGH: stack pointer raised above its value at entry; behind an early return the "
     "frame is there again: remember() in front of its epilogue, restore() with its ret\n"
     "region 1, offset +2f: W_UNBALANCED: the last region ends with the frame still allocated\n"},
    {"AnotherSizeDeallocated", in_47_bytes().allocate({0, 4}, 24).deallocate({-5, -1}, 16),
     "procedure: W_UNBALANCED: ends with the frame still allocated: is a pop or deallocate missing? If it ends in a "
     "jump or in a call that does not return, say ends_without_return()\n"},

    // Registers.
    {"RegisterMinusOne", in_47_bytes().push({0, 1}, Reg(static_cast<RegNum>(-1))).pop({-2, -1}),
     "push({0, 1}): E_REG: x86-64 has no register with DWARF number 65535\n"},
    {"StackPointerAsFramePointer", in_47_bytes().set_frame_pointer({0, 3}, rsp),
     "set_frame_pointer({0, 3}, rsp, 0): E_NO_FP: SP can be reloaded only from the frame pointer or its slot\n"},
    {"MovedToARegisterThatIsNotSaved", in_47_bytes().move_to({0, 3}, rbx, r12).reload({5, 8}, rbx),
     "move_to({0, 3}, rbx, r12): E_REG_LOST: r12 is overwritten before it is saved\n"},
    {"MovedToAScratchRegisterAroundACall", in_47_bytes().move_to({0, 3}, rbx, rax).call({3, 5}).reload({5, 8}, rbx),
     "move_to({0, 3}, rbx, rax): E_REG_LOST: rax is not kept by the call in {3, 5}\n"},
    {"ReloadedButNotSaved", in_47_bytes().push({0, 1}, rbx).reload({3, 7}, r12).pop({-2, -1}, rbx),
     "reload({3, 7}, r12): E_POP_REG: r12 was not saved\n"},
    {"ReturnAddressPoppedFromBelow", in_47_bytes().push({0, 1}).pop_return_address({-3, -2}, rcx),
     "pop_return_address({-3, -2}, rcx): E_RA_LOST: the return address is 8 bytes above SP\n"},
    {"RealignedWithoutFramePointer", in_47_bytes().push({0, 1}, rbx).realign({1, 5}).pop({-2, -1}, rbx),
     "realign({1, 5}): E_SP_LOST: SP relation lost and no frame pointer\n"
     "region 1, offset +2f: W_UNBALANCED: the last region ends with the frame still allocated\n"},
    {"RestoredFromAnotherFramePointer",
     in_47_bytes()
         .push({0, 1}, rbp)
         .set_frame_pointer({1, 4}, rbp)
         .push({4, 5}, rbx)
         .restore_sp({-5, -2}, rbx)
         .pop({-2, -1}, rbp),
     "restore_sp({-5, -2}, rbx, 0): E_NO_FP: SP can be reloaded only from the frame pointer or its slot\n"
     "region 1, offset +2f: W_UNBALANCED: the last region ends with the frame still allocated\n"},
    {"FramePointerMovedButNotSet",
     in_47_bytes().push({0, 1}, rbp).move_frame_pointer({1, 5}, rbp, 16).pop({-2, -1}, rbp),
     "move_frame_pointer({1, 5}, rbp, 16): E_ADD_REG: ADD to a register that is neither SP nor the frame pointer\n"},
    {"SavedThroughNoFramePointer",
     in_47_bytes().allocate({0, 4}, 16).save_at_fp({4, 8}, rbx, -8).deallocate({-5, -1}, 16),
     "save_at_fp({4, 8}, rbx, -8): E_NO_FP: SPILL_FP_REL without a frame pointer\n"},
    {"SpReloadedFromNoSlot", in_47_bytes().push({0, 1}, rbx).reload_sp({5, 9}).pop({-2, -1}, rbx),
     "reload_sp({5, 9}): E_NO_FP: SP can be reloaded only from the frame pointer or its slot\n"},

    // Early returns.
    {"RememberedButNotRestored",
     in_47_bytes()
         .push({0, 1}, rbx)
         .remember()
         .allocate({1, 5}, 16)
         .deallocate({16, 20}, 16)
         .pop({20, 21}, rbx)
         .deallocate({-6, -2}, 16)
         .pop({-2, -1}, rbx),
     "pop({-2, -1}, rbx): E_POP_REG: rbx has its value again since pop({20, 21}, rbx); behind an early return the "
     "frame is there again: remember() in front of its epilogue, restore() with its ret\n"},
    {"RestoredTooEarly",
     in_47_bytes().push({0, 1}, rbx).remember().pop({20, 21}, rbx).restore({16, 17}).pop({-2, -1}, rbx),
     "restore({16, 17}): W_UNBALANCED: leaves with 8 bytes of the frame still allocated: is a pop or deallocate "
     "missing? If it is a jump that keeps the frame, say ends_without_return()\n"
     "pop({-2, -1}, rbx): E_POP_REG: rbx has its value again since pop({20, 21}, rbx); behind an early return the "
     "frame is there again: remember() in front of its epilogue, restore() with its ret\n"},
    {"EarlyReturnKeepsItsFrame",
     in_47_bytes()
         .push({0, 1}, rbx)
         .push({1, 3}, r12)
         .remember()
         .pop({16, 18}, r12)
         .restore({18, 19})
         .pop({-4, -2}, r12)
         .pop({-2, -1}, rbx),
     "restore({18, 19}): W_UNBALANCED: leaves with 8 bytes of the frame still allocated: is a pop or deallocate "
     "missing? If it is a jump that keeps the frame, say ends_without_return()\n"},

    // Regions and directives.
    {"RegionLongerThanTheCode", in_47_bytes().region(100).add(0, rsp, -8).region(5).add(1, rsp, 8),
     "region 0: E_OVERLAP: regions are longer than the procedure\n"
     "region 1: E_OVERLAP: regions are longer than the procedure\n"
     "region 0, offset +64: W_UNBALANCED: the last region ends with the frame still allocated\n"},
    {"WhenOutOfItsRegion", in_47_bytes().region(5).add(99, rsp, -8).region(-5).add(3, rsp, 8),
     "region 0, directive 0 (ADD rsp,-8 @63), offset +5: E_WHEN: the region has 5 instruction units\n"},
    {"IdiomOutOfItsRegion", describe().region(10).push({20, 21}, rbx).region(-5).pop({-2, -1}, rbx),
     "push({20, 21}, rbx): E_WHEN: outside of its region +0..+a\n"},
    {"TwoLastRegions", in_47_bytes().region(-5).add(1, rsp, -8).region(-5).add(3, rsp, 8),
     "region 0: E_NEG: negative insn_count in a region that is not the last\n"},
    {"RegionOfLeast", describe().region(std::numeric_limits<std::int32_t>::min()).add(5, rsp, -8),
     "procedure: W_UNBALANCED: ends with the frame still allocated: is a pop or deallocate missing? If it ends in a "
     "jump or in a call that does not return, say ends_without_return()\n"},
    {"PopsNoFrames", describe().region(5).add(0, rsp, -8).region(-5).pop_frames(3, 0),
     "region 1, directive 0 (POP_FRAMES 0 @3), offset +a: E_POP: POP_FRAMES of 0\n"
     "region 1, offset +b: W_UNBALANCED: the last region ends with the frame still allocated\n"},
    {"LabelNobodySet", describe().region(5).add(0, rsp, -8).copy_state(7).region(-5).add(3, rsp, 8),
     "region 0, directive 1 (COPY_STATE 7), offset +0: W_UNSORTED: directives are not in the order of their "
     "instructions\n"
     "region 0, directive 1 (COPY_STATE 7), offset +0: E_LABEL: COPY_STATE of an unknown or later label\n"},
    {"OperationUnknown", describe().region(5).op({99, 0, 0, 0, 0}).region(-5),
     "region 0, directive 0 (TAG_99 rax,0 @0), offset +1: E_TAG: unknown directive before STOP\n"},
    {"AliasBesideOthers", in_47_bytes().region(0).alias(0x1000).add(0, rsp, -8),
     "region 0, directive 0 (ALIAS 0x1000), offset +0: E_ALIAS: ALIAS is not the only directive of its region\n"},

    // Rows.
    {"RowWithoutEnd", in_47_bytes().row_at(0, "cfa=rsp+8 ra=[cfa-8"),
     "row_at(): INVALID_ARGUMENT: row text \"cfa=rsp+8 ra=[cfa-8\", character 19: bad register rule\n"},
    {"RowOfNoRegister", in_47_bytes().row_at(0, "cfa=rzp+8"),
     "row_at(): INVALID_ARGUMENT: row text \"cfa=rzp+8\", character 4: bad CFA rule\n"},
    {"RowEmpty", in_47_bytes().row_at(0, ""),
     "row_at(): INVALID_ARGUMENT: row text \"\", character 0: row must begin with cfa=\n"},
    {"RowWithoutReturnAddress", in_47_bytes().row_at(0, "cfa=rsp+8"),
     "row_at(0): INVALID_ARGUMENT: the row does not say where the return address is\n"},
    {"RowBehindTheEnd", in_47_bytes().row_at(0x100, "cfa=rsp+8 ra=[cfa-8]"),
     "row_at(256): E_RANGE: behind the end of the procedure\n"},
    {"RowWithARegisterTwice", in_47_bytes().row_at(0, "cfa=rsp+8 rbx=rbx rbx=r12 ra=[cfa-8]"),
     "row_at(): INVALID_ARGUMENT: row text \"cfa=rsp+8 rbx=rbx rbx=r12 ra=[cfa-8]\", character 25: register given "
     "twice\n"},
    {"TwoRowsAtOnePlace", in_47_bytes().row_at(4, "cfa=rsp+8 ra=[cfa-8]").row_at(4, "cfa=rsp+16 ra=[cfa-8]"),
     "row_at(4): INVALID_ARGUMENT: more than one row for this offset\n"},

    // Handlers.
    {"LandingPadOutside", pushing_rbx().call_site({1, 3}, 128).catches_all(),
     "call_site({1, 3}, 128): E_LANDING_PAD: landing pad 128 lies behind the end of the procedure\n"},
    {"LandingPadAtTheFirstByte", pushing_rbx().call_site({1, 3}, 0).catches_all(),
     "call_site({1, 3}, 0): E_LANDING_PAD: the first byte of a procedure cannot be a landing pad\n"},
    {"CallSiteOutside", pushing_rbx().call_site({64, 70}, 5).catches_all(),
     "call_site({64, 70}, 5): E_CALL_SITE: begin 64 lies behind the end of the procedure\n"},
    {"CallSiteWithoutBytes", pushing_rbx().call_site({3, 3}, 5).catches_all(),
     "call_site({3, 3}, 5): E_CALL_SITE: has no bytes\n"},
    {"CallSitesOverlap", pushing_rbx().call_site({1, 8}, 20).catches_all().call_site({3, 9}, 20).catches_all(),
     "call_site({3, 9}, 20): E_CALL_SITE: overlaps call_site({1, 8}, 20)\n"},
    {"CatchesWithoutCallSite", pushing_rbx().catches_all(),
     "catches_all(): INVALID_ARGUMENT: not behind a call_site()\n"},
    {"CatchesNoType", pushing_rbx().call_site({1, 3}, 5).catches(nullptr),
     "catches(): E_CATCH_TYPE: null is no type; see catches_all()\n"},
    {"HandlerWithoutFunction", pushing_rbx().handled_by({}), "handled_by(): INVALID_ARGUMENT: no function\n"},
    {"HandlerBesideCallSites", pushing_rbx().handled_by(pass).call_site({1, 3}, 5).cleans_up(),
     "handled_by(): INVALID_ARGUMENT: beside call_site(): one or the other decides\n"},
};

INSTANTIATE_TEST_SUITE_P(OfOtherKinds, Mistakes, testing::ValuesIn(k_mistakes), test_name);

}  // namespace
}  // namespace jitunwind
