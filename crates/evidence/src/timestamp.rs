//! Time stamps of other authorities (RFC 3161): the request, and a check of the reply as far as it needs no certificates.

use sha2::{Digest as _, Sha256};

/// The most bytes of a reply.
pub const MAX_TIMESTAMP_BYTES: usize = 64 << 10;

/// A request without its hash: version 1, SHA-256. Of `TimeStampReq`, it is everything before the hash.
const REQUEST_HEAD: [u8; 24] = [
    0x30, 0x39, 0x02, 0x01, 0x01, 0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02,
    0x01, 0x05, 0x00, 0x04, 0x20,
];
/// `certReq`: the reply has the certificates that are needed to verify it.
const REQUEST_TAIL: [u8; 3] = [0x01, 0x01, 0xff];

/// The tags of a sequence and an integer.
const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;

/// Why a reply is no time stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTimestamp {
    /// It has another form, or ends early.
    #[error("the reply is not one of a time stamp authority")]
    Malformed,
    /// The authority has not given a time stamp.
    #[error("the authority refused the time stamp, with status {0}")]
    Refused(u8),
    /// The time stamp is one of something else.
    #[error("the reply is a time stamp of something else")]
    OtherContent,
}

/// The request for a time stamp of these bytes (`application/timestamp-query`).
pub fn timestamp_request(content: &[u8]) -> Vec<u8> {
    let digest: [u8; 32] = Sha256::digest(content).into();
    [REQUEST_HEAD.as_slice(), digest.as_slice(), REQUEST_TAIL.as_slice()].concat()
}

/// Checks that a reply (`application/timestamp-reply`) is complete, that its status is a time stamp, and that it has the hash of
/// these bytes. Whether the signature of the authority is valid is not checked: that takes its certificates, which belong to
/// those who verify the time stamp.
///
/// # Errors
/// [`InvalidTimestamp`].
pub fn check_timestamp(reply: &[u8], content: &[u8]) -> Result<(), InvalidTimestamp> {
    let (reply, rest) = value(reply, SEQUENCE).ok_or(InvalidTimestamp::Malformed)?;
    if !rest.is_empty() {
        return Err(InvalidTimestamp::Malformed);
    }
    let (info, token) = value(reply, SEQUENCE).ok_or(InvalidTimestamp::Malformed)?;
    let (status, _) = value(info, INTEGER).ok_or(InvalidTimestamp::Malformed)?;
    match status {
        // Granted, or granted with modifications.
        [0 | 1] => {}
        [status] => return Err(InvalidTimestamp::Refused(*status)),
        _ => return Err(InvalidTimestamp::Malformed),
    }
    let (token, rest) = value(token, SEQUENCE).ok_or(InvalidTimestamp::Malformed)?;
    if !rest.is_empty() {
        return Err(InvalidTimestamp::Malformed);
    }
    let digest: [u8; 32] = Sha256::digest(content).into();
    match token.windows(digest.len()).any(|part| part == digest) {
        true => Ok(()),
        false => Err(InvalidTimestamp::OtherContent),
    }
}

/// The content of the value that begins here, if it has this tag, and what follows it.
fn value(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match *first {
        short @ 0..=0x7f => (usize::from(short), rest),
        long @ 0x81..=0x83 => {
            let (digits, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
            (digits.iter().fold(0, |length, digit| (length << 8) | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    (*found == tag).then(|| rest.split_at_checked(length))?
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reply with this status and, in its token, the hash of these bytes.
    fn reply(status: u8, content: &[u8]) -> Vec<u8> {
        let digest: [u8; 32] = Sha256::digest(content).into();
        let token = [[0x30, 0x22, 0x04, 0x20].as_slice(), digest.as_slice()].concat();
        let info = [0x30, 0x03, 0x02, 0x01, status];
        let length = u8::try_from(info.len() + token.len()).unwrap();
        [[0x30, length].as_slice(), info.as_slice(), token.as_slice()].concat()
    }

    #[test]
    fn request_has_its_length_and_the_hash() {
        let request = timestamp_request(b"abc");
        assert_eq!(request.len(), 2 + usize::from(request[1]));
        assert!(request.windows(4).any(|part| part == [0xba, 0x78, 0x16, 0xbf]));
    }

    #[test]
    fn only_time_stamps_of_the_content_are_accepted() {
        for status in [0, 1] {
            assert_eq!(check_timestamp(&reply(status, b"abc"), b"abc"), Ok(()));
        }
        assert_eq!(check_timestamp(&reply(2, b"abc"), b"abc"), Err(InvalidTimestamp::Refused(2)));
        assert_eq!(check_timestamp(&reply(0, b"abc"), b"abd"), Err(InvalidTimestamp::OtherContent));
        let whole = reply(0, b"abc");
        for length in 0..whole.len() {
            assert_eq!(check_timestamp(&whole[..length], b"abc"), Err(InvalidTimestamp::Malformed), "{length}");
        }
        let longer = [whole, vec![0]].concat();
        assert_eq!(check_timestamp(&longer, b"abc"), Err(InvalidTimestamp::Malformed));
        assert_eq!(check_timestamp(&[0x30, 5, 0x30, 3, 2, 1, 2], b"abc"), Err(InvalidTimestamp::Refused(2)));
    }
}
