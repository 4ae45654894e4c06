//! The checksum of zip archives: CRC-32 with the polynomial of IEEE 802.3.

static TABLE: [u32; 256] = table();

/// The checksum of bytes.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| (crc >> 8) ^ TABLE[usize::from(crc.to_le_bytes()[0] ^ byte)];
    !bytes.iter().fold(u32::MAX, step)
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let (mut at, mut value) = (0_usize, 0_u32);
    while at < 256 {
        let (mut crc, mut bit) = (value, 0);
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
            bit += 1;
        }
        table[at] = crc;
        at += 1;
        value += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_has_its_check_value() {
        assert_eq!((crc32(b"123456789"), crc32(b"")), (0xcbf4_3926, 0));
    }
}
