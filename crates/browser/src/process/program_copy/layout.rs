//! An ELF program, and the same program laid out for huge pages.
//!
//! Linux maps a part of a file with one huge page if it begins at the same distance from a multiple of 2 MiB in the file
//! and in memory. Linkers only ensure that for pages of 4 KiB. In the new file, each part is at the offset at which it is in
//! memory, counted from the program's first byte.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The size of a huge page, with normal pages of 4 KiB.
const HUGE_PAGE: u64 = 2 << 20;

/// The number of bytes in which the headers must be. A program has about twelve of 56 bytes.
const HEADERS: usize = 4096;

/// The largest program that is copied. Chromium has 0.2 GiB.
const MAX_SIZE: u64 = 1 << 30;

// Fields of the file header and of a program header (System V ABI, chapter 4 and 5; the x86-64 and AArch64 supplements).
const MAGIC: &[u8] = b"\x7fELF";
const CLASS_64_LITTLE_ENDIAN: &[u8] = &[2, 1, 1];
const TYPE: usize = 16;
const TYPE_POSITION_INDEPENDENT: u16 = 3;
const PROGRAM_HEADERS: usize = 32;
const SECTION_HEADERS: usize = 40;
const PROGRAM_HEADER_SIZE: usize = 54;
const PROGRAM_HEADER_COUNT: usize = 56;
const SECTION_HEADER_COUNT: usize = 60;
const SECTION_NAMES: usize = 62;
const ENTRY: usize = 56;
const ENTRY_OFFSET: usize = 8;
const ENTRY_ADDRESS: usize = 16;
const ENTRY_FILE_SIZE: usize = 32;
const ENTRY_MEMORY_SIZE: usize = 40;
const ENTRY_ALIGNMENT: usize = 48;
const LOADED: u32 = 1;

/// How a program is laid out for huge pages.
#[derive(Debug)]
pub(super) struct Layout {
    /// The file header and the program headers of the new file.
    headers: Vec<u8>,
    segments: Vec<Segment>,
    /// The size of the new file in bytes.
    pub(super) size: u64,
}

/// A part of the program that is loaded.
#[derive(Debug)]
struct Segment {
    /// Its offset in the old file.
    offset: u64,
    /// Its address in memory, and its offset in the new file.
    address: u64,
    file_size: u64,
    memory_size: u64,
}

impl Layout {
    /// Reads the headers of a program. `None` if it is not a program that can be laid out: a script, for example.
    pub(super) fn read(program: &File) -> io::Result<Option<Self>> {
        let mut headers = vec![0; HEADERS];
        let length = program.read_at(&mut headers, 0)?;
        headers.truncate(length);
        Ok(Self::parse(headers))
    }

    fn parse(mut headers: Vec<u8>) -> Option<Self> {
        let rest = headers.strip_prefix(MAGIC)?;
        if !rest.starts_with(CLASS_64_LITTLE_ENDIAN)
            || u16::from_le_bytes(get(&headers, TYPE)?) != TYPE_POSITION_INDEPENDENT
            || usize::from(u16::from_le_bytes(get(&headers, PROGRAM_HEADER_SIZE)?)) != ENTRY
        {
            return None;
        }
        let table = usize::try_from(u64::from_le_bytes(get(&headers, PROGRAM_HEADERS)?)).ok()?;
        let count = usize::from(u16::from_le_bytes(get(&headers, PROGRAM_HEADER_COUNT)?));
        let end = table.checked_add(count * ENTRY)?;
        if end > headers.len() {
            return None;
        }
        headers.truncate(end);
        let entries: Vec<usize> = (table..end).step_by(ENTRY).collect();
        let is_loaded = |headers: &[u8], entry| get(headers, entry).map(u32::from_le_bytes) == Some(LOADED);
        let mut segments = Vec::new();
        for entry in entries.iter().copied().filter(|entry| is_loaded(&headers, *entry)) {
            let field = |at| get(&headers, entry + at).map(u64::from_le_bytes);
            segments.push(Segment {
                offset: field(ENTRY_OFFSET)?,
                address: field(ENTRY_ADDRESS)?,
                file_size: field(ENTRY_FILE_SIZE)?,
                memory_size: field(ENTRY_MEMORY_SIZE)?,
            });
        }
        let size = Segment::end_of_file(&segments)?;
        for entry in entries {
            let address = get(&headers, entry + ENTRY_ADDRESS)?;
            if segments.iter().any(|segment| segment.contains(u64::from_le_bytes(address))) {
                set(&mut headers, entry + ENTRY_OFFSET, address)?;
            }
            if is_loaded(&headers, entry) {
                set(&mut headers, entry + ENTRY_ALIGNMENT, HUGE_PAGE.to_le_bytes())?;
            }
        }
        // Sections are for linkers and debuggers, and not copied.
        set(&mut headers, SECTION_HEADERS, [0; 8])?;
        set(&mut headers, SECTION_HEADER_COUNT, [0; 2])?;
        set(&mut headers, SECTION_NAMES, [0; 2])?;
        Some(Self { headers, segments, size })
    }

    /// Fills `block` with the bytes of the new file that begin at `start`.
    pub(super) fn read_block(&self, program: &File, start: u64, block: &mut [u8]) -> io::Result<()> {
        block.fill(0);
        let end = start + block.len() as u64;
        for segment in &self.segments {
            let (first, last) = (segment.address.max(start), (segment.address + segment.file_size).min(end));
            if let Some(part) = range(block, first, last, start) {
                program.read_exact_at(part, segment.offset + (first - segment.address))?;
            }
        }
        if start == 0
            && let Some(headers) = block.get_mut(..self.headers.len())
        {
            headers.copy_from_slice(&self.headers);
        }
        Ok(())
    }
}

impl Segment {
    fn contains(&self, address: u64) -> bool {
        (self.address..self.address + self.memory_size).contains(&address)
    }

    /// The end of the last segment in the new file. `None` if segments overlap, if the first one does not begin with the
    /// file, as it must to contain the headers, or if the file would be too large.
    fn end_of_file(segments: &[Self]) -> Option<u64> {
        let first = segments.first()?;
        if (first.offset, first.address) != (0, 0) || first.file_size < HEADERS as u64 {
            return None;
        }
        let mut end = 0;
        for segment in segments {
            let is_valid = segment.address >= end && segment.file_size <= segment.memory_size;
            end = segment.address.checked_add(segment.memory_size).filter(|end| is_valid && *end <= MAX_SIZE)?;
        }
        segments.last().map(|last| last.address + last.file_size)
    }
}

/// The bytes `first..last` of the file, of which `block` begins at `start`. `None` if there are none.
fn range(block: &mut [u8], first: u64, last: u64, start: u64) -> Option<&mut [u8]> {
    let index = |at: u64| usize::try_from(at.checked_sub(start)?).ok();
    if first < last { block.get_mut(index(first)?..index(last)?) } else { None }
}

fn get<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn set<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) -> Option<()> {
    *bytes.get_mut(at..)?.first_chunk_mut()? = value;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test's own program, which is position-independent.
    fn program() -> File {
        File::open("/proc/self/exe").unwrap()
    }

    #[test]
    fn loaded_parts_are_at_their_addresses() {
        let (program, layout) = (program(), Layout::read(&program()).unwrap().unwrap());
        let mut copy = vec![0; usize::try_from(layout.size).unwrap()];
        layout.read_block(&program, 0, &mut copy).unwrap();
        for segment in &layout.segments {
            let length = usize::try_from(segment.file_size).unwrap();
            let mut part = vec![0; length];
            program.read_exact_at(&mut part, segment.offset).unwrap();
            let at = usize::try_from(segment.address).unwrap();
            // The headers are changed.
            let changed = if segment.address == 0 { layout.headers.len() } else { 0 };
            assert!(copy[at + changed..at + length] == part[changed..], "{segment:?}");
        }
        // In blocks, it is the same file.
        let mut blocks = Vec::new();
        for start in (0..layout.size).step_by(1 << 20) {
            let mut block = vec![1; usize::try_from((layout.size - start).min(1 << 20)).unwrap()];
            layout.read_block(&program, start, &mut block).unwrap();
            blocks.extend(block);
        }
        assert!(blocks == copy);
        // A copy of the copy has the same layout.
        let again = Layout::parse(copy[..HEADERS].to_vec()).unwrap();
        assert!(again.headers == layout.headers && again.segments.iter().all(|part| part.offset == part.address));
    }

    #[test]
    fn other_files_have_no_layout() {
        let mut headers = vec![0; HEADERS];
        program().read_exact_at(&mut headers, 0).unwrap();
        let changed = |at: usize, value: &[u8]| {
            let mut changed = headers.clone();
            changed[at..at + value.len()].copy_from_slice(value);
            Layout::parse(changed).is_none()
        };
        assert!(!changed(0, MAGIC));
        assert!(changed(0, b"#!/bin/sh"));
        // 32 bits, not position-independent, other headers, headers outside of the file, too large.
        assert!(changed(4, &[1]) && changed(TYPE, &[2]) && changed(PROGRAM_HEADER_SIZE, &[32, 0]));
        assert!(changed(PROGRAM_HEADERS, &[0xff; 8]) && changed(PROGRAM_HEADER_COUNT, &[0xff; 2]));
        assert!(Layout::parse(Vec::new()).is_none() && Layout::parse(MAGIC.to_vec()).is_none());
        assert!(Segment::end_of_file(&[]).is_none());
        let part = |address, memory_size| Segment { offset: address, address, file_size: 5000, memory_size };
        assert_eq!(Segment::end_of_file(&[part(0, 6000), part(8192, 5000)]), Some(13_192));
        assert_eq!(Segment::end_of_file(&[part(0, 9000), part(8192, 5000)]), None);
        assert_eq!(Segment::end_of_file(&[part(0, MAX_SIZE + 1)]), None);
        assert_eq!(Segment::end_of_file(&[part(0, u64::MAX), part(u64::MAX, 9)]), None);
    }
}
