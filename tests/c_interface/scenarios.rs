//! Descriptions of the tests in C, made with the safe types. Rows and directives equal those of C in `scenarios.txt`; a
//! test of the library compares this file with the results in C.
use jitunwind::{Builder, Cpu, Directive, ExceptionType, Instruction::*};

type Describe = fn(Builder, ExceptionType, ExceptionType) -> Builder;

#[rustfmt::skip]
fn scenarios() -> Vec<(&'static str, Cpu, Describe)> {
    vec![
        ("call_back", Cpu::X86_64, |builder, _a, _b| { builder
                .say(0..1, Push("rbp"))
                .say(1..2, Push("rbx"))
                .say(2..3, Allocate(8))
                .say(7..11, Deallocate(8))
                .say(11..12, Pop("rbx"))
                .say(12..13, Pop("rbp"))
                .size(14) }),
        ("frame_with_leave", Cpu::X86_64, |builder, _a, _b| { builder
                .say(0..1, Push("rbp"))
                .say(1..4, SetFramePointer("rbp", 0))
                .say(4..8, Allocate(32))
                .say(20..21, Leave) }),
        ("entered", Cpu::X86_64, |builder, _a, _b| { builder
                .say(0..4, Enter(32))
                .say(16..17, Leave) }),
        ("saved_at_sp", Cpu::X86_64, |builder, _a, _b| { builder
                .say(0..4, Allocate(24))
                .say(4..9, SaveAtSp("rbx", 8))
                .say(9..14, SaveAtSp("r12", 16))
                .say(30..34, Deallocate(24)) }),
        ("frame_pointer_above_sp", Cpu::X86_64, |builder, _a, _b| { builder
                .say(0..7, Allocate(136))
                .say(7..15, SaveAtSp("rbp", 128))
                .say(15..23, SetFramePointer("rbp", 128))
                .say(32..40, Reload("rbp"))
                .say(40..47, Deallocate(136)) }),
        ("saved_at_fp", Cpu::X86_64, |builder, _a, _b| { builder
                .say(0..1, Push("rbp"))
                .say(1..4, SetFramePointer("rbp", 0))
                .say(4..8, Allocate(16))
                .say(8..12, SaveAtFp("rbx", -8))
                .say(20..23, RestoreSp("rbp", 0))
                .say(23..24, Pop("rbp")) }),
        ("variable", Cpu::X86_64, |builder, _a, _b| { builder
                .say(0..1, Push("rbp"))
                .say(1..4, SetFramePointer("rbp", 0))
                .say(4..5, Push("rbx"))
                .say(5..8, AllocateVariable)
                .say(18..22, RestoreSp("rbp", -8))
                .say(22..23, Pop("rbx"))
                .say(23..24, Pop("rbp")) }),
        ("realigned", Cpu::X86_64, |builder, _a, _b| { builder
                .say(0..1, Push("rbx"))
                .say(1..4, SetFramePointer("rax", 0))
                .say(4..8, Realign)
                .say(8..15, Allocate(128))
                .say(15..20, StoreSp(64))
                .say(32..37, ReloadSp)
                .say(37..38, Pop("rbx")) }),
        ("probed", Cpu::X86_64, |builder, _a, _b| { builder
                .probe_loop(0..8, 8..15, 26..28, 65536, "r11")
                .say(28..32, Allocate(104))
                .say(64..71, Deallocate(65640)) }),
        ("callee_that_pops", Cpu::X86_64, |builder, _a, _b| { builder
                .size(18)
                .say(0..4, Allocate(8))
                .say(4..6, PushOther)
                .say(6..8, PushOther)
                .say(8..13, CalleePops(16))
                .say(13..17, Deallocate(8)) }),
        ("popped_return_address", Cpu::X86_64, |builder, _a, _b| { builder
                .say(0..1, PopReturnAddress("rcx"))
                .ends_without_return() }),
        ("red_zone", Cpu::X86_64, |builder, _a, _b| { builder
                .size(16)
                .say(0..5, SaveAtSp("rbx", -64))
                .say(5..6, PushOther)
                .say(6..7, PopOther) }),
        ("kept_in_register", Cpu::X86_64, |builder, _a, _b| { builder
                .say(0..1, Push("rbx"))
                .say(1..4, MoveTo("r12", "r8"))
                .say(8..11, Reload("r12"))
                .say(11..12, Pop("rbx")) }),
        ("moved_frame_pointer", Cpu::X86_64, |builder, _a, _b| { builder
                .say(0..1, Push("rbp"))
                .say(1..4, SetFramePointer("rbp", 0))
                .say(4..8, MoveFramePointer("rbp", 16))
                .say(16..20, MoveFramePointer("rbp", -16))
                .say(20..23, RestoreSp("rbp", 0))
                .say(23..24, Pop("rbp")) }),
        ("early_returns", Cpu::X86_64, |builder, _a, _b| { builder
                .size(48)
                .say(0..1, Push("rbx"))
                .say(1..5, Allocate(16))
                .remember()
                .say(16..20, Deallocate(16))
                .say(20..21, Pop("rbx"))
                .say(21..22, Return)
                .say(24..28, Deallocate(16))
                .say(28..29, Pop("rbx"))
                .say(29..30, Return)
                .say(-6..-2, Deallocate(16))
                .say(-2..-1, Pop("rbx")) }),
        ("labels_beside_remember", Cpu::X86_64, |builder, _a, _b| { builder
                .region(16)
                .remember()
                .say(0..1, Push("rbx"))
                .directive(0, Directive::LabelState(1))
                .remember()
                .say(4..5, Pop("rbx"))
                .say(5..6, Return)
                .say(8..9, Pop("rbx")) }),
        ("mixed", Cpu::X86_64, |builder, _a, _b| { builder
                .region(12)
                .say(0..1, Push("rbp"))
                .directive(3, Directive::SaveReg("rsp", "rbp"))
                .region(-2)
                .say(-2..-1, Leave) }),
        ("leaf", Cpu::X86_64, |builder, _a, _b| { builder }),
        ("facts", Cpu::X86_64, |builder, _a, _b| unsafe {
                builder
                .personality(4096)
                .lsda(8192)
                .gp(12288)
                .size(8)
            }),
        ("does_not_return", Cpu::X86_64, |builder, _a, _b| { builder
                .size(10)
                .say(0..1, Push("rbx"))
                .ends_without_return() }),
        ("example_1_in_one_region", Cpu::X86_64, |builder, _a, _b| { builder
                .region(44)
                .directive(0, Directive::Add("rsp", -8))
                .directive(0, Directive::SpillSpRel("rbp", 0))
                .directive(3, Directive::SaveReg("rsp", "rbp"))
                .directive(4, Directive::Add("rsp", -8))
                .directive(4, Directive::SpillSpRel("rbx", 0))
                .directive(8, Directive::Add("rsp", -24))
                .directive(8, Directive::LabelState(1))
                .directive(22, Directive::Add("rsp", 24))
                .directive(23, Directive::Add("rsp", 8))
                .directive(24, Directive::Add("rsp", 8))
                .directive(25, Directive::CopyState(1))
                .directive(40, Directive::Add("rsp", 24))
                .directive(41, Directive::Add("rsp", 8))
                .directive(42, Directive::Add("rsp", 8)) }),
        ("example_1_in_three_regions", Cpu::X86_64, |builder, _a, _b| { builder
                .region(19)
                .directive(0, Directive::Add("rsp", -8))
                .directive(0, Directive::SpillSpRel("rbp", 0))
                .directive(3, Directive::SaveReg("rsp", "rbp"))
                .directive(4, Directive::Add("rsp", -8))
                .directive(4, Directive::SpillSpRel("rbx", 0))
                .directive(8, Directive::Add("rsp", -24))
                .directive(0, Directive::Stop)
                .region(7)
                .directive(3, Directive::Add("rsp", 24))
                .directive(4, Directive::Add("rsp", 8))
                .directive(5, Directive::PopFrames(1))
                .region(18)
                .directive(14, Directive::Add("rsp", 24))
                .directive(15, Directive::Add("rsp", 8))
                .directive(16, Directive::PopFrames(1)) }),
        ("example_1_coarse", Cpu::X86_64, |builder, _a, _b| { builder
                .region(19)
                .directive(0, Directive::Add("rsp", -8))
                .directive(0, Directive::SpillSpRel("rbp", 0))
                .directive(3, Directive::SaveReg("rsp", "rbp"))
                .directive(4, Directive::Add("rsp", -8))
                .directive(4, Directive::SpillSpRel("rbx", 0))
                .directive(8, Directive::Add("rsp", -24))
                .region(7)
                .directive(5, Directive::PopFrames(1))
                .region(-12)
                .directive(10, Directive::PopFrames(1)) }),
        ("example_1_in_random_order", Cpu::X86_64, |builder, _a, _b| { builder
                .region(44)
                .directive(41, Directive::Add("rsp", 8))
                .directive(4, Directive::SpillSpRel("rbx", 0))
                .directive(25, Directive::CopyState(1))
                .directive(0, Directive::Add("rsp", -8))
                .directive(23, Directive::Add("rsp", 8))
                .directive(40, Directive::Add("rsp", 24))
                .directive(8, Directive::LabelState(1))
                .directive(3, Directive::SaveReg("rsp", "rbp"))
                .directive(24, Directive::Add("rsp", 8))
                .directive(8, Directive::Add("rsp", -24))
                .directive(0, Directive::SpillSpRel("rbp", 0))
                .directive(42, Directive::Add("rsp", 8))
                .directive(4, Directive::Add("rsp", -8))
                .directive(22, Directive::Add("rsp", 24)) }),
        ("example_1_with_labels", Cpu::X86_64, |builder, _a, _b| { builder
                .region(19)
                .directive(0, Directive::Add("rsp", -8))
                .directive(0, Directive::SpillSpRel("rbp", 0))
                .directive(3, Directive::SaveReg("rsp", "rbp"))
                .directive(4, Directive::Add("rsp", -8))
                .directive(4, Directive::SpillSpRel("rbx", 0))
                .directive(8, Directive::Add("rsp", -24))
                .directive(-1, Directive::LabelState(100402))
                .region(7)
                .directive(3, Directive::Add("rsp", 24))
                .directive(4, Directive::Add("rsp", 8))
                .directive(5, Directive::Add("rsp", 8))
                .region(0)
                .directive(-1, Directive::CopyState(100402))
                .region(18)
                .directive(14, Directive::Add("rsp", 24))
                .directive(15, Directive::Add("rsp", 8))
                .directive(16, Directive::Add("rsp", 8)) }),
        ("example_1_by_idioms", Cpu::X86_64, |builder, _a, _b| { builder
                .size(44)
                .say(0..1, Push("rbp"))
                .say(1..4, SetFramePointer("rbp", 0))
                .say(4..5, Push("rbx"))
                .say(5..9, Allocate(24))
                .remember()
                .say(19..23, Deallocate(24))
                .say(23..24, Pop("rbx"))
                .say(24..25, Pop("rbp"))
                .say(25..26, Return)
                .say(37..41, Deallocate(24))
                .say(41..42, Pop("rbx"))
                .say(42..43, Pop("rbp")) }),
        ("example_2", Cpu::X86_64, |builder, _a, _b| { builder
                .region(24)
                .directive(3, Directive::Add("rsp", -40))
                .directive(22, Directive::Add("rsp", 40)) }),
        ("example_4", Cpu::X86_64, |builder, _a, _b| { builder
                .say(0..1, Push("rbp"))
                .say(1..4, SetFramePointer("rbp", 0))
                .say(4..5, Push("rbx"))
                .say(5..7, Push("r12"))
                .say(-5..-3, Pop("r12"))
                .say(-3..-2, Pop("rbx"))
                .say(-2..-1, Pop("rbp")) }),
        ("cold_part", Cpu::X86_64, |builder, _a, _b| { builder
                .entry_state("cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]", Some(48))
                .say(5..9, Deallocate(24))
                .say(9..10, Pop("rbx"))
                .say(10..11, Pop("rbp")) }),
        ("entered_by_row", Cpu::X86_64, |builder, _a, _b| { builder
                .entry_state("cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]", None)
                .say(-2..-1, Leave) }),
        ("rows", Cpu::X86_64, |builder, _a, _b| { builder
                .size(64)
                .row_at(5, "cfa=r10 ra=[cfa-8]")
                .row_at(17, "cfa=r10 rbp=[rbp] ra=[cfa-8]")
                .row_at(19, "cfa=[rbp-8] rbp=[rbp] ra=[cfa-8]")
                .row_at(-7, "cfa=r10 rbp=[rbp] ra=[cfa-8]")
                .row_at(-5, "cfa=r10 ra=[cfa-8]")
                .row_at(-1, "cfa=rsp+8 ra=[cfa-8]") }),
        ("expression", Cpu::X86_64, |builder, _a, _b| { builder
                .row_at(4, "cfa=expr(770889) ra=[cfa-8]") }),
        ("fp_relative", Cpu::X86_64, |builder, _a, _b| { builder
                .region(16)
                .directive(0, Directive::Add("rsp", -8))
                .directive(0, Directive::SpillSpRel("rbp", 0))
                .directive(3, Directive::SaveReg("rsp", "rbp"))
                .directive(7, Directive::SpillFpRel("rbx", -8))
                .directive(12, Directive::SaveReg("rbp", "rsp"))
                .directive(13, Directive::PopFrames(1)) }),
        ("alias", Cpu::X86_64, |builder, _a, _b| { builder
                .region(16)
                .directive(-1, Directive::Alias(65536)) }),
        ("raw_directives", Cpu::X86_64, |builder, _a, _b| { builder
                .region(8)
                .directive(0, Directive::Op(4, 0, 7, 18446744073709551608))
                .directive(4, Directive::Op(4, 0, 7, 8)) }),
        ("catches", Cpu::X86_64, |builder, a, _b| { builder
                .say(0..1, Push("rbx"))
                .remember()
                .say(6..7, Pop("rbx"))
                .say(7..8, Return)
                .call_site(4..6, 8)
                .catches(a)
                .say(13..14, Pop("rbx"))
                .size(15) }),
        ("every_reason", Cpu::X86_64, |builder, a, b| { builder
                .say(0..1, Push("rbx"))
                .call_site(4..6, 20)
                .catches(b)
                .catches(a)
                .call_site(6..8, 24)
                .allows(&[a, b])
                .cleans_up()
                .call_site(8..10, 28)
                .catches_all()
                .say(10..12, Terminates)
                .say(12..14, Call)
                .say(30..31, Pop("rbx"))
                .size(32) }),
        ("pairs", Cpu::Aarch64, |builder, _a, _b| { builder
                .say(0..4, StorePairPre("x29", "x30", -64))
                .say(4..8, SetFramePointer("x29", 0))
                .say(8..12, StorePair("x19", "x20", 16))
                .say(12..16, SaveAtSp("v8", 32))
                .say(32..36, LoadPairPost("x29", "x30", 64)) }),
        ("reloaded_pair", Cpu::Aarch64, |builder, _a, _b| { builder
                .say(0..4, Allocate(64))
                .say(4..8, StorePair("x29", "x30", 32))
                .say(8..12, SetFramePointer("x29", 32))
                .say(16..20, ReloadPair("x29", "x30"))
                .say(20..24, Deallocate(64)) }),
        ("one_register", Cpu::Aarch64, |builder, _a, _b| { builder
                .say(0..4, StorePre("x30", -16))
                .say(8..12, LoadPost("x30", 16)) }),
        ("signed_return_address", Cpu::Aarch64, |builder, _a, _b| { builder
                .say(0..4, SignReturnAddress)
                .say(4..8, StorePairPre("x29", "x30", -16))
                .say(12..16, LoadPairPost("x29", "x30", 16))
                .say(16..20, AuthenticateReturnAddress) }),
        ("parked", Cpu::Aarch64, |builder, _a, _b| { builder
                .say(0..4, MoveTo("x30", "x17"))
                .say(8..12, Reload("x30")) }),
        ("variable_on_aarch64", Cpu::Aarch64, |builder, _a, _b| { builder
                .say(0..4, StorePairPre("x29", "x30", -16))
                .say(4..8, SetFramePointer("x29", 0))
                .say(8..12, AllocateVariable)
                .say(16..20, RestoreSp("x29", 0))
                .say(20..24, LoadPairPost("x29", "x30", 16)) }),
        ("example_3", Cpu::Aarch64, |builder, _a, _b| { builder
                .region(9)
                .directive(0, Directive::Add("sp", -32))
                .directive(0, Directive::SpillSpRel("x29", 0))
                .directive(0, Directive::SpillSpRel("x30", 8))
                .directive(1, Directive::SaveReg("sp", "x29"))
                .directive(2, Directive::SpillSpRel("x19", 16))
                .directive(7, Directive::Add("sp", 32)) }),
    ]
}

static TYPES: [u64; 4] = [0; 4];

/// Formats a description as the file does: name, rows of the least size or of its own, directives, warnings.
fn text_of(name: &str, cpu: Cpu, describe: Describe) -> String {
    // Nothing is thrown, so these addresses are never read.
    let (a, b) = unsafe { (ExceptionType::at((&TYPES[0] as *const u64).cast()), ExceptionType::at((&TYPES[2] as *const u64).cast())) };
    let description = describe(Builder::for_cpu(cpu, name), a, b).build().unwrap();
    let size = description.size().unwrap_or(200);
    format!("== {}\n{}-- {}\n{}{}", name, description.rows(0), size, description.directives(), description.warnings())
}

#[test]
fn descriptions_are_those_of_c() {
    let said: String = scenarios().iter().map(|&(name, cpu, describe)| text_of(name, cpu, describe)).collect();
    let expected = include_str!("scenarios.txt");
    for (line, (here, there)) in said.lines().zip(expected.lines()).enumerate() {
        assert_eq!(here, there, "line {}", line + 1);
    }
    assert_eq!(said.len(), expected.len());
    assert!(scenarios().len() >= 30);
}
