//! How a browser maps its program.

use std::path::Path;

/// How a browser maps the copy of its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mapping {
    /// At least three quarters are mapped with huge pages.
    Huge,
    /// Less is. The kernel has dropped parts of the file from memory, and read them back from the disk in small pieces; or
    /// it found no huge pages when the file was written.
    Fragmented,
    /// Nothing is, although the file is new.
    Unsupported,
    /// The mappings cannot be read, or are those of a file that was replaced.
    Unknown,
}

impl Mapping {
    /// Reads the mappings of `program` in the text of `/proc/PID/smaps`. `is_new`: the file was written a short time ago.
    pub(super) fn read(mappings: &str, program: &Path, is_new: bool) -> Self {
        let program = program.to_string_lossy();
        // In KiB. Parts that the process has changed are anonymous memory.
        let (mut in_memory, mut huge, mut is_of_program) = (0_u64, 0, false);
        for line in mappings.lines() {
            let Some((name, value)) = line.split_once(':').filter(|(name, _)| !name.contains(' ')) else {
                // The first line of a mapping ends with its file. It has the time and a device with a colon.
                is_of_program = line.ends_with(&*program);
                continue;
            };
            let size = || value.trim().strip_suffix(" kB").and_then(|number| number.parse().ok()).unwrap_or(0);
            match name {
                "Rss" if is_of_program => in_memory += size(),
                "Anonymous" if is_of_program => in_memory = in_memory.saturating_sub(size()),
                "FilePmdMapped" if is_of_program => huge += size(),
                _ => {}
            }
        }
        match (in_memory, huge) {
            (0, _) => Self::Unknown,
            _ if huge * 4 >= in_memory * 3 => Self::Huge,
            (_, 0) if is_new => Self::Unsupported,
            _ => Self::Fragmented,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapping_is_that_of_the_program() {
        let read = |huge: u32, other: u32, is_new| {
            let mappings = format!(
                "55d0-56d0 r-xp 02dfc000 fe:00 57                         /cache/program-1/shell\n\
                 Rss:               10000 kB\nAnonymous:             0 kB\nFilePmdMapped:      {huge} kB\nVmFlags: rd ex\n\
                 57d0-58d0 r--p 0dfc000 fe:00 57                         /cache/program-1/shell\n\
                 Rss:                5800 kB\nAnonymous:          5800 kB\nFilePmdMapped:         0 kB\nVmFlags: rd\n\
                 7f00-8000 r--s 00000000 fe:00 5                         /cache/program-1/data.pak\n\
                 Rss:                4096 kB\nAnonymous:             0 kB\nFilePmdMapped:      {other} kB\n"
            );
            Mapping::read(&mappings, Path::new("/cache/program-1/shell"), is_new)
        };
        assert_eq!(read(7500, 0, true), Mapping::Huge);
        assert_eq!(read(7499, 0, true), Mapping::Fragmented);
        assert_eq!(read(0, 4096, false), Mapping::Fragmented);
        assert_eq!(read(0, 4096, true), Mapping::Unsupported);
        let replaced = "55d0-56d0 r-xp 0 fe:00 57    /cache/program-1/shell (deleted)\nRss:    10000 kB\n";
        assert_eq!(Mapping::read(replaced, Path::new("/cache/program-1/shell"), true), Mapping::Unknown);
        assert_eq!(Mapping::read("", Path::new("/cache/program-1/shell"), true), Mapping::Unknown);
    }
}
