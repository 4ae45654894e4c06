//! URLs of the files of a grab.

/// A URL of a file of a grab. Over gRPC it is absolute; over REST, the contract has those of placeholders relative to the
/// origin of the API.
pub(crate) fn shown_url(url: &str, is_live: bool) -> &str {
    let path = || {
        let rest = &url[url.find("://")? + 3..];
        rest.find('/').map(|at| &rest[at..])
    };
    if is_live { url } else { path().unwrap_or(url) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_placeholders_are_relative() {
        for (url, is_live, shown) in [
            ("https://img.example/i/ab/c.png", true, "https://img.example/i/ab/c.png"),
            ("https://img.example/i/ab/c.png", false, "/i/ab/c.png"),
            ("http://127.0.0.1:8080/i/ab/c.png", false, "/i/ab/c.png"),
            ("/i/ab/c.png", false, "/i/ab/c.png"),
            ("https://img.example", false, "https://img.example"),
        ] {
            assert_eq!(shown_url(url, is_live), shown);
        }
    }
}
