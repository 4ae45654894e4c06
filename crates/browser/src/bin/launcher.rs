//! The launcher as a program, for callers whose own binary is not a launcher, such as tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    grabd_browser::launcher(std::env::args_os()).unwrap_or_else(|| {
        eprintln!("This program is started by grabd and is not meant to be run directly.");
        ExitCode::FAILURE
    })
}
