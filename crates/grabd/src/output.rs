//! Standard output.

/// Prints a line. A reader that has closed the output, such as `head`, is no error and must not end a service, which
/// `println!` would do by its panic.
macro_rules! print_line {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

pub(crate) use print_line;
