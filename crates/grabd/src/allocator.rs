//! The C library's allocator, and what it does with the memory of freed images.

use std::env;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Blocks of at least this many bytes are mapped, and unmapped when they are freed. glibc reads the variable once, when a
/// program starts: see `M_MMAP_THRESHOLD` in `mallopt(3)`.
const THRESHOLD: (&str, &str) = ("MALLOC_MMAP_THRESHOLD_", "1048576");

/// Starts this program again, as the same process with the same arguments, so that it returns the memory of freed images.
///
/// By default glibc raises the threshold to the size of the largest block freed so far, at most 32 MiB. Further images then
/// share heaps with small objects, and their memory stays with the process: after 96 captures of large images beside 240
/// previews, 655 MiB instead of 75.
///
/// Call it before there are threads. It returns if the variable is set, or if the program cannot be started again, which
/// costs memory only. Other C libraries ignore the variable.
pub fn return_freed_images() {
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
    let _error = again.args(arguments).env(name, bytes).exec();
}
