//! Finds the library in JITUNWIND_LIB_DIR of the environment, else where the linker looks.
fn main() {
    println!("cargo:rerun-if-env-changed=JITUNWIND_LIB_DIR");
    if let Ok(folder) = std::env::var("JITUNWIND_LIB_DIR") {
        println!("cargo:rustc-link-search=native={}", folder);
    }
    println!("cargo:rustc-link-lib=dylib=jitunwind");
    println!("cargo:rustc-link-lib=dylib=jitunwind-core");
}
