//! CSV (RFC 4180): commas, CRLF, and quotes where needed. Text that a spreadsheet would evaluate as a formula is escaped.

/// A cell with untrusted text. Spreadsheets evaluate text that begins with one of these characters as a formula; a
/// leading apostrophe prevents that.
pub fn cell(text: &str) -> String {
    let escaped = match text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        true => format!("'{text}"),
        false => text.to_owned(),
    };
    match escaped.contains([',', '"', '\r', '\n']) {
        true => format!("\"{}\"", escaped.replace('"', "\"\"")),
        false => escaped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_when_needed_and_formulas_are_escaped() {
        for (text, expected) in [
            ("", ""),
            ("ref:invoice 4711", "ref:invoice 4711"),
            ("a,b", "\"a,b\""),
            ("a \"b\"", "\"a \"\"b\"\"\""),
            ("a\nb", "\"a\nb\""),
            ("=1+1", "'=1+1"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("\r=1", "\"'\r=1\""),
            ("=HYPERLINK(\"http://x\",\"y\")", "\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\""),
            ("a=1", "a=1"),
        ] {
            assert_eq!(cell(text), expected, "{text:?}");
        }
    }
}
