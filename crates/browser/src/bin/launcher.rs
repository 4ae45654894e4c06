//! The launcher alone, for programs that are not launchers themselves, such as tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    grabd_browser::launcher(std::env::args_os()).unwrap_or_else(|| {
        eprintln!("This program is called by a service that starts browsers, and by nobody else.");
        ExitCode::FAILURE
    })
}
