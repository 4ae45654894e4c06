//! Request correlation: request ids and trace ids sent by callers.

/// Longest accepted request id, in characters.
const REQUEST_ID_CHARS: usize = 128;

/// Returns a caller's request id if it is safe to log and to echo.
pub fn request_id(text: &str) -> Option<&str> {
    let is_short = (1..=REQUEST_ID_CHARS).contains(&text.len());
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    (is_short && is_plain).then_some(text)
}

/// Returns the trace id of a well-formed `traceparent` field (W3C Trace Context, section 3.2).
pub fn trace_id(traceparent: &str) -> Option<&str> {
    let mut parts = traceparent.split('-');
    let (version, trace, parent, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_hex = |part: &str, length| {
        part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    let is_id = |part: &str, length| is_hex(part, length) && part.bytes().any(|byte| byte != b'0');
    // Version 00 has exactly four parts. Later versions may have more.
    let is_complete = version != "00" || parts.next().is_none();
    (is_hex(version, 2) && version != "ff" && is_id(trace, 32) && is_id(parent, 16) && is_hex(flags, 2) && is_complete)
        .then_some(trace)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

    #[test]
    fn trace_id_rejects_malformed_traceparent() {
        for (traceparent, valid) in [
            ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", true),
            ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", true),
            ("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", true),
            ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", false),
            ("ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false),
            ("00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", false),
            ("00-00000000000000000000000000000000-b7ad6b7169203331-01", false),
            ("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", false),
            ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331", false),
            ("00-0af7-b7ad6b7169203331-01", false),
            ("", false),
        ] {
            assert_eq!(trace_id(traceparent), valid.then_some(TRACE), "{traceparent}");
        }
    }

    #[test]
    fn request_id_rejects_long_or_special_text() {
        let long = "a".repeat(129);
        for (text, valid) in [
            ("a", true),
            ("A.b_c-9", true),
            (&long[1..], true),
            (&long, false),
            ("", false),
            ("a b", false),
            ("a/b", false),
            ("é", false),
        ] {
            assert_eq!(request_id(text).is_some(), valid, "{text:?}");
        }
    }
}
