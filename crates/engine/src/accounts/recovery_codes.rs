//! Recovery codes, for people who have lost their authenticator app.

use data_encoding::BASE32_NOPAD;
use grabd_domain::accounts::RECOVERY_CODES;
use grabd_domain::ids::UserId;

use crate::{digest, random};

/// Random bytes of a code: too many to guess, also for somebody who has the hashes.
const BYTES: usize = 10;
/// Characters of a code without separators.
const CHARS: usize = 16;
/// Characters between separators.
const GROUP: usize = 4;

/// New codes, as they are shown.
pub(super) fn generate() -> Vec<String> {
    std::iter::repeat_with(|| grouped(&BASE32_NOPAD.encode(&random::secret()[..BYTES]))).take(RECOVERY_CODES).collect()
}

/// The code in what somebody typed, without separators: `None` if it is malformed.
pub(super) fn parse(compact: &str) -> Option<String> {
    let code = compact.to_ascii_lowercase();
    let is_valid = code.len() == CHARS && code.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'2'..=b'7'));
    is_valid.then_some(code)
}

/// The stored hash of a code without separators. It is different for each user, so that hashes cannot be compared.
pub(super) fn hash(user: UserId, code: &str) -> [u8; 32] {
    digest::of(&format!("grabd recovery code\n{user}\n{code}"))
}

/// The stored hashes of shown codes.
pub(super) fn hashes(user: UserId, shown: &[String]) -> Vec<[u8; 32]> {
    shown.iter().map(|code| hash(user, &code.replace('-', ""))).collect()
}

fn grouped(code: &str) -> String {
    let groups: Vec<&str> =
        (0..code.len()).step_by(GROUP).map(|start| &code[start..code.len().min(start + GROUP)]).collect();
    groups.join("-").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use uuid::Uuid;

    use super::*;

    #[test]
    fn shown_codes_are_distinct_and_parse_to_their_hashes() {
        let user = UserId(Uuid::from_u128(1));
        let shown = generate();
        assert_eq!(shown.iter().collect::<BTreeSet<_>>().len(), RECOVERY_CODES);
        for (code, expected) in shown.iter().zip(hashes(user, &shown)) {
            assert_eq!(code.len(), 19, "{code}");
            let typed = parse(&code.replace('-', "").to_ascii_uppercase()).unwrap();
            assert_eq!(hash(user, &typed), expected);
            assert_ne!(hash(UserId(Uuid::from_u128(2)), &typed), expected);
        }
    }

    #[test]
    fn malformed_codes_are_not_parsed() {
        for text in
            ["", "abcdefghijklmno", "abcdefghijklmnopq", "abcdefghijklmno1", "abcdefghijklmnö", "abcd-efgh-ijkl-m"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
