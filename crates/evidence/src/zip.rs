//! Archives of files that are stored without compression. The bytes of an archive depend on the names and contents only.

use std::io::{self, Write};

use crate::invalid::Invalid;

/// The most files of an archive.
const MAX_ENTRIES: usize = 16;
/// The most bytes of a name.
const MAX_NAME_BYTES: usize = 64;

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;

/// The version of the format for stored files.
const VERSION: u16 = 10;
/// 1980-01-01, the first date that the format has.
const DATE: u16 = 0x0021;
/// The bytes of the head of a file before its name.
const LOCAL_BYTES: usize = 30;

/// A file of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub(crate) name: &'a str,
    pub(crate) content: &'a [u8],
}

/// Writes an archive.
///
/// # Errors
/// Those of `to`, and if the archive would have 4 GB.
pub(crate) fn write(entries: &[Entry<'_>], to: &mut dyn Write) -> io::Result<()> {
    let (mut offset, mut directory) = (0_u32, Vec::new());
    for entry in entries {
        let common = common(entry)?;
        let mut local = LOCAL.to_le_bytes().to_vec();
        local.extend(&common);
        local.extend(entry.name.as_bytes());
        to.write_all(&local)?;
        to.write_all(entry.content)?;
        directory.extend(CENTRAL.to_le_bytes());
        directory.extend(VERSION.to_le_bytes());
        directory.extend(&common);
        // No comment, the first disk, no attributes.
        directory.extend([0; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend(entry.name.as_bytes());
        let length = size(local.len())?.checked_add(size(entry.content.len())?).ok_or_else(too_large)?;
        offset = offset.checked_add(length).ok_or_else(too_large)?;
    }
    let count = u16::try_from(entries.len()).map_err(|_| too_large())?.to_le_bytes();
    let mut end = END.to_le_bytes().to_vec();
    // One disk.
    end.extend([0; 4]);
    end.extend(count);
    end.extend(count);
    end.extend(size(directory.len())?.to_le_bytes());
    end.extend(offset.to_le_bytes());
    // No comment.
    end.extend([0; 2]);
    to.write_all(&directory)?;
    to.write_all(&end)
}

/// What the head of a file and its place in the directory have in common: from the version to the length of extra fields.
fn common(Entry { name, content }: &Entry<'_>) -> io::Result<Vec<u8>> {
    let (bytes, name) = (size(content.len())?.to_le_bytes(), u16::try_from(name.len()).map_err(|_| too_large())?);
    let mut head = VERSION.to_le_bytes().to_vec();
    // No flags, no compression, midnight.
    head.extend([0; 6]);
    head.extend(DATE.to_le_bytes());
    head.extend(crc32fast::hash(content).to_le_bytes());
    head.extend(bytes);
    head.extend(bytes);
    head.extend(name.to_le_bytes());
    // No extra fields.
    head.extend([0; 2]);
    Ok(head)
}

fn size(bytes: usize) -> io::Result<u32> {
    u32::try_from(bytes).map_err(|_| too_large())
}

fn too_large() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "the archive is too large")
}

/// The files of an archive. Nothing is accepted that [`write`] would not write.
///
/// # Errors
/// If the archive differs in any byte from the one that is made of its files.
pub(crate) fn read(archive: &[u8]) -> Result<Vec<Entry<'_>>, Invalid> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    let mut at = 0;
    while archive.get(at..).is_some_and(|rest| rest.starts_with(&LOCAL.to_le_bytes())) {
        let (entry, next) = entry_at(archive, at).ok_or(Invalid::Container(at))?;
        if entries.iter().any(|other| other.name.eq_ignore_ascii_case(entry.name)) {
            return Err(Invalid::DuplicateName(entry.name.to_owned()));
        }
        if entries.len() == MAX_ENTRIES {
            return Err(Invalid::Container(at));
        }
        entries.push(entry);
        at = next;
    }
    let mut same = Comparison { expected: archive, at: 0 };
    match write(&entries, &mut same) {
        Ok(()) if same.at == archive.len() => Ok(entries),
        Ok(()) | Err(_) => Err(Invalid::Changed(same.at)),
    }
}

/// The file whose head begins here, and where it ends.
fn entry_at(archive: &[u8], at: usize) -> Option<(Entry<'_>, usize)> {
    let head = archive.get(at..at.checked_add(LOCAL_BYTES)?)?;
    let length = usize::try_from(u32::from_le_bytes(head.get(18..22)?.try_into().ok()?)).ok()?;
    let name_bytes = usize::from(u16::from_le_bytes(head.get(26..28)?.try_into().ok()?));
    let begin = at + LOCAL_BYTES;
    let content = begin.checked_add(name_bytes)?;
    let end = content.checked_add(length)?;
    let name = std::str::from_utf8(archive.get(begin..content)?).ok()?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let is_valid = (1..=MAX_NAME_BYTES).contains(&name_bytes) && name.bytes().all(is_name) && !name.starts_with('.');
    is_valid.then_some((Entry { name, content: archive.get(content..end)? }, end))
}

/// Compares what is written with what is expected, and ends at the first difference.
struct Comparison<'a> {
    expected: &'a [u8],
    at: usize,
}

impl Write for Comparison<'_> {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        let rest = self.expected.get(self.at..).unwrap_or_default();
        let equal = rest.iter().zip(part).take_while(|(expected, found)| expected == found).count();
        self.at += equal;
        match equal == part.len() {
            true => Ok(equal),
            false => Err(io::Error::other("a byte differs")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(entries: &[Entry<'_>]) -> Vec<u8> {
        let mut archive = Vec::new();
        write(entries, &mut archive).unwrap();
        archive
    }

    #[test]
    fn archive_is_read_as_it_was_written() {
        let files = [Entry { name: "a.txt", content: b"first" }, Entry { name: "b", content: b"" }];
        let written = archive(&files);
        assert_eq!(read(&written), Ok(files.to_vec()));
        assert_eq!(archive(&files), written);
        assert_eq!(read(&archive(&[])), Ok(Vec::new()));
    }

    #[test]
    fn archives_of_others_are_refused() {
        let twice = [Entry { name: "a", content: b"1" }, Entry { name: "A", content: b"2" }];
        assert_eq!(read(&archive(&twice)), Err(Invalid::DuplicateName("A".to_owned())));
        for name in ["", "../a", "a/b", ".a", "a b", "\u{e4}", &"a".repeat(MAX_NAME_BYTES + 1)] {
            assert_eq!(read(&archive(&[Entry { name, content: b"1" }])), Err(Invalid::Container(0)), "{name}");
        }
        let names: Vec<String> = (0..=MAX_ENTRIES).map(|at| at.to_string()).collect();
        let many: Vec<Entry<'_>> = names.iter().map(|name| Entry { name, content: b"" }).collect();
        assert!(matches!(read(&archive(&many)), Err(Invalid::Container(_))));
        assert!(read(&archive(&many[..MAX_ENTRIES])).is_ok());
        let longer = [archive(&many[..1]), b" ".to_vec()].concat();
        assert_eq!(read(&longer), Err(Invalid::Changed(longer.len() - 1)));
        assert_eq!(read(b""), Err(Invalid::Changed(0)));
    }
}
