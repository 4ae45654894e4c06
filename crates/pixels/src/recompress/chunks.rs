//! The chunks of a PNG.

/// The eight bytes that start a PNG.
const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// The bytes of a chunk beside its data: length, name and checksum.
const OVERHEAD: usize = 12;

/// Chunks before the pixels that have the same meaning for every type of pixels.
const KEPT: [&[u8; 4]; 5] = [b"cHRM", b"cICP", b"gAMA", b"pHYs", b"sRGB"];

/// The chunks of a file that are kept as they are.
///
/// # Errors
/// `None` if the file is no PNG, or has other chunks beside its pixels: what they say could be wrong for other pixels.
pub(super) fn kept(file: &[u8]) -> Option<Vec<&[u8]>> {
    let mut rest = file.strip_prefix(SIGNATURE)?;
    let (mut kept, mut has_pixels) = (Vec::new(), false);
    loop {
        let length = usize::try_from(u32::from_be_bytes(*rest.first_chunk()?)).ok()?;
        let (chunk, after) = rest.split_at_checked(length.checked_add(OVERHEAD)?)?;
        let name: &[u8; 4] = chunk.get(4..)?.first_chunk()?;
        match name {
            b"IEND" => return (has_pixels && after.is_empty()).then_some(kept),
            b"IDAT" => has_pixels = true,
            b"IHDR" => {}
            _ if KEPT.contains(&name) && !has_pixels => kept.push(chunk),
            _ => return None,
        }
        rest = after;
    }
}

/// A PNG that is written.
pub(super) struct File {
    bytes: Vec<u8>,
}

impl File {
    /// Begins a file with its size, the bits of a channel, and the type of its pixels.
    pub(super) fn begin(width: u32, height: u32, depth: u8, color: u8) -> Self {
        let mut file = Self { bytes: SIGNATURE.to_vec() };
        let mut head = [width.to_be_bytes(), height.to_be_bytes()].concat();
        // The only method of compression, and of filters; not interlaced.
        head.extend([depth, color, 0, 0, 0]);
        file.add(b"IHDR", &head);
        file
    }

    /// Adds a chunk that is complete.
    pub(super) fn add_complete(&mut self, chunk: &[u8]) {
        self.bytes.extend_from_slice(chunk);
    }

    /// Adds a chunk.
    pub(super) fn add(&mut self, name: &[u8; 4], data: &[u8]) {
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(name);
        checksum.update(data);
        // Also for the last chunk, for which a full buffer would be doubled.
        self.bytes.reserve(data.len() + 2 * OVERHEAD);
        self.bytes.extend(u32::try_from(data.len()).unwrap_or(u32::MAX).to_be_bytes());
        self.bytes.extend(name);
        self.bytes.extend_from_slice(data);
        self.bytes.extend(checksum.finalize().to_be_bytes());
    }

    /// Ends the file.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.add(b"IEND", &[]);
        self.bytes.shrink_to_fit();
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(chunks: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
        let mut file = File::begin(2, 3, 8, 2);
        chunks.iter().for_each(|(name, data)| file.add(name, data));
        file.finish()
    }

    #[test]
    fn chunks_of_every_type_of_pixels_are_kept() {
        let written = file(&[(b"gAMA", &[0, 0, 1, 2]), (b"pHYs", &[7; 9]), (b"IDAT", &[1]), (b"IDAT", &[2])]);
        let kept = kept(&written).unwrap();
        assert_eq!(kept.iter().map(|chunk| &chunk[4..8]).collect::<Vec<_>>(), [b"gAMA", b"pHYs"]);
        assert_eq!(kept[0].len(), 16);
    }

    #[test]
    fn files_with_other_chunks_are_refused() {
        for chunks in [
            &[(b"bKGD", &[0; 6][..]), (b"IDAT", &[1])][..],
            &[(b"acTL", &[0; 8]), (b"IDAT", &[1])],
            &[(b"IDAT", &[1]), (b"tEXt", b"a\0b")],
            &[(b"IDAT", &[1]), (b"pHYs", &[7; 9])],
            &[(b"pHYs", &[7; 9])],
        ] {
            assert!(kept(&file(chunks)).is_none(), "{chunks:?}");
        }
        let written = file(&[(b"IDAT", &[1])]);
        assert!(kept(&written).is_some_and(|kept| kept.is_empty()));
        for end in 0..written.len() {
            assert!(kept(&written[..end]).is_none(), "{end} bytes");
        }
        assert!(kept(&[written.as_slice(), b"more"].concat()).is_none());
    }
}
