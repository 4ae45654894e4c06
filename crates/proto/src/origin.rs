//! Where a request comes from, as its caller says: the id it gave it and the trace it belongs to.

/// Longest request id of a caller that is taken over, in characters.
const REQUEST_ID_CHARS: usize = 128;

/// A caller's request id, if it is one that can be logged and sent back as it is.
pub fn request_id(text: &str) -> Option<&str> {
    let fits = (1..=REQUEST_ID_CHARS).contains(&text.len());
    let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    (fits && plain).then_some(text)
}

/// The trace that a `traceparent` field names (W3C Trace Context, section 3.2), if it is well-formed.
pub fn trace_id(traceparent: &str) -> Option<&str> {
    let mut parts = traceparent.split('-');
    let (version, trace, parent, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_hex = |part: &str, length| {
        part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    let is_id = |part: &str, length| is_hex(part, length) && part.bytes().any(|byte| byte != b'0');
    // Later versions may have more parts; the first one has not.
    let whole = version != "00" || parts.next().is_none();
    (is_hex(version, 2) && version != "ff" && is_id(trace, 32) && is_id(parent, 16) && is_hex(flags, 2) && whole)
        .then_some(trace)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

    #[test]
    fn only_well_formed_traces_are_continued() {
        for (traceparent, is_one) in [
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
            assert_eq!(trace_id(traceparent), is_one.then_some(TRACE), "{traceparent}");
        }
    }

    #[test]
    fn only_plain_request_ids_are_taken_over() {
        let long = "a".repeat(129);
        for (text, is_one) in [
            ("a", true),
            ("A.b_c-9", true),
            (&long[1..], true),
            (&long, false),
            ("", false),
            ("a b", false),
            ("a/b", false),
            ("é", false),
        ] {
            assert_eq!(request_id(text).is_some(), is_one, "{text:?}");
        }
    }
}
