//! Settings of glibc's memory allocator.

use std::env;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// An environment variable and its value: blocks of at least this many bytes are mapped one by one, and unmapped when they
/// are freed. glibc reads the variable once, when a program starts: see `M_MMAP_THRESHOLD` in `mallopt(3)`.
pub const THRESHOLD: (&str, &str) = ("MALLOC_MMAP_THRESHOLD_", "1048576");

/// Starts this program again, as the same process with the same arguments, so that glibc returns the memory of freed
/// images to the system.
///
/// By default glibc raises the threshold to the size of the largest block freed so far, at most 32 MiB. Later images then
/// share heaps with small objects, and their memory stays with the process: after 96 captures of large images beside
/// 240 previews, about 650 MiB instead of 75.
///
/// Call it before there are threads. It returns if the variable is set already, or, with a message, if the program cannot
/// be started again. Other C libraries ignore the variable.
pub fn restart_with_fixed_threshold() {
    let (name, bytes) = THRESHOLD;
    if env::var_os(name).is_some() {
        return;
    }
    let Ok(program) = env::current_exe() else { return };
    let mut arguments = env::args_os();
    let mut again = Command::new(program);
    if let Some(own_name) = arguments.next() {
        again.arg0(own_name);
    }
    // Returns only if the program cannot be started.
    let error = again.args(arguments).env(name, bytes).exec();
    eprintln!("grabd: cannot start again with {name}={bytes}, so the memory of freed images is kept: {error}");
}
