//! A code generator that records its prologue as a list, as Cranelift does, and makes a description of it.
use jitunwind::{Builder, Instruction};

/// The steps that the back end has recorded, each with the code offset behind the instruction.
enum Unwind {
    PushFrameRegisters { upward_offset_to_caller_sp: i64 },
    DefineNewFrame { downward_offset_to_clobbers: i64 },
    SaveReg { clobber_offset: i64, reg: &'static str },
}

fn description_of(name: &str, prologue: &[(i64, Unwind)], size: usize) -> Result<jitunwind::Description, jitunwind::Error> {
    let mut builder = Builder::new(name).size(size);
    let (mut begin, mut clobbers) = (0, 0);
    for (end, instruction) in prologue {
        let at = begin..*end;
        builder = match instruction {
            Unwind::PushFrameRegisters { upward_offset_to_caller_sp } => {
                assert_eq!(*upward_offset_to_caller_sp, 16);
                builder.say(at, Instruction::Push("rbp"))
            }
            Unwind::DefineNewFrame { downward_offset_to_clobbers } => {
                clobbers = *downward_offset_to_clobbers;
                builder.say(at, Instruction::SetFramePointer("rbp", 0))
            }
            Unwind::SaveReg { clobber_offset, reg } => builder.say(at, Instruction::SaveAtFp(reg, clobber_offset - clobbers)),
        };
        begin = *end;
    }
    builder.say(-2..-1, Instruction::Leave).build()
}

fn main() -> Result<(), jitunwind::Error> {
    // push rbp; mov rbp,rsp; sub rsp,16; mov [rbp-16],rbx; .. leave; ret
    let prologue = [
        (1, Unwind::PushFrameRegisters { upward_offset_to_caller_sp: 16 }),
        (4, Unwind::DefineNewFrame { downward_offset_to_clobbers: 16 }),
        (12, Unwind::SaveReg { clobber_offset: 0, reg: "rbx" }),
    ];
    print!("{}", description_of("f", &prologue, 20)?.rows(20));
    Ok(())
}
