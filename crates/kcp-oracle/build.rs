//! Compiles the C reference.

fn main() {
    let folder = "../../third_party/kcp";
    cc::Build::new()
        .file(format!("{folder}/ikcp.c"))
        .include(folder)
        .opt_level(3)
        // Absurd timestamps overflow the reference's signed arithmetic;
        // with this they wrap, as they do in practice, and may be compared.
        .flag_if_supported("-fwrapv")
        .warnings(false)
        .compile("ikcp");
    for file in ["ikcp.c", "ikcp.h"] {
        println!("cargo::rerun-if-changed={folder}/{file}");
    }
}
