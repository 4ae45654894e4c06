//! The build script of `crates/proto`: compiles the contract in `proto/` without protoc, and writes clients, servers
//! and the descriptor set (used by reflection, including comments) to `OUT_DIR`.

use std::path::PathBuf;

const FILES: [&str; 11] = [
    "grabd/v1/access.proto",
    "grabd/v1/errors.proto",
    "grabd/v1/grabs.proto",
    "grabd/v1/links.proto",
    "grabd/v1/monitors.proto",
    "grabd/v1/sites.proto",
    "grabd/v1/usage.proto",
    "grabd/v1/pricing.proto",
    "grabd/v1/proxies.proto",
    "grabd/v1/webhooks.proto",
    "grabd/internal/v1/renderer.proto",
];

#[expect(clippy::disallowed_methods, reason = "cargo tells a build script where it is by environment alone")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let manifest = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let root = manifest.join("../../proto");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    println!("cargo:rerun-if-changed={}", root.display());

    let mut compiler = protox::Compiler::new([&root])?;
    compiler.include_imports(true).include_source_info(true).open_files(FILES)?;
    std::fs::write(out.join("grabd.bin"), compiler.encode_file_descriptor_set())?;
    tonic_prost_build::configure()
        .build_transport(false)
        .bytes(".grabd.internal.v1")
        // Much larger than the other messages of their streams.
        .boxed(".grabd.internal.v1.AttachResponse.message.assignment")
        .boxed(".grabd.internal.v1.FinishPictureRequest.message.header")
        // Much larger than the error of a batch.
        .boxed(".grabd.v1.BatchResult.result.grab")
        .compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}
