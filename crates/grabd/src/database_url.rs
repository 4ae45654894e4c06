//! The password in the URL of the database. It is split by hand, because URL parsers refuse a URL with several servers.

/// A database URL without its password, and the password as it is encoded there.
pub(crate) struct WithoutPassword<'a> {
    /// Up to the password, or the whole URL.
    before: &'a str,
    pub(crate) password: Option<&'a str>,
    /// From the `@`.
    after: &'a str,
}

impl<'a> WithoutPassword<'a> {
    pub(crate) fn of(url: &'a str) -> Self {
        let whole = Self { before: url, password: None, after: "" };
        let Some(begin) = url.find("://").map(|at| at + 3) else { return whole };
        let end = url[begin..].find(['/', '?']).map_or(url.len(), |length| begin + length);
        let Some(at) = url[begin..end].rfind('@').map(|length| begin + length) else { return whole };
        match url[begin..at].find(':').map(|length| begin + length) {
            Some(colon) => Self { before: &url[..colon], password: Some(&url[colon + 1..at]), after: &url[at..] },
            None => whole,
        }
    }

    /// The URL without the password.
    pub(crate) fn url(&self) -> String {
        [self.before, self.after].concat()
    }

    /// For logs: an ellipsis instead of the password.
    pub(crate) fn described(&self) -> String {
        match self.password {
            Some(_) => [self.before, ":…", self.after].concat(),
            None => self.url(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_is_removed_from_urls_with_one_server_and_several() {
        for (url, described, password) in [
            ("postgres://u:hunter2@h/n", "postgres://u:…@h/n", Some("hunter2")),
            ("postgres://u:a%40b@h1:5432,h2:5433/n?x=@", "postgres://u:…@h1:5432,h2:5433/n?x=@", Some("a%40b")),
            ("postgres://u:p@w@h", "postgres://u:…@h", Some("p@w")),
            ("postgres://u@h:5432/n", "postgres://u@h:5432/n", None),
            ("postgres://h:5432/n", "postgres://h:5432/n", None),
            ("sqlite://./data/grabd.db", "sqlite://./data/grabd.db", None),
            ("sqlite::memory:", "sqlite::memory:", None),
        ] {
            let without = WithoutPassword::of(url);
            assert_eq!((without.described().as_str(), without.password), (described, password));
            assert_eq!(without.url(), described.replace(":…", ""));
        }
    }
}
