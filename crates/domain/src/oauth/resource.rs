//! What a token is for (RFC 8707). There is one resource server, which has several names.

/// The names of the resource server that an app knows, each without a trailing slash. None: it named none, and all are
/// meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources(Vec<String>);

/// A resource that is not here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("There is no such resource here, or it is not one that was allowed.")]
pub struct ResourceError;

impl Resources {
    /// The resources that a request names, out of those there are.
    ///
    /// # Errors
    /// When one of them is none of ours.
    pub fn parse<'a>(asked: impl IntoIterator<Item = &'a str>, ours: &[&str]) -> Result<Self, ResourceError> {
        let mut resources = Vec::new();
        for asked in asked {
            let named = bare(asked);
            if !ours.iter().any(|ours| bare(ours) == named) {
                return Err(ResourceError);
            }
            if !resources.iter().any(|known| known == named) {
                resources.push(named.to_owned());
            }
        }
        Ok(Self(resources))
    }

    /// May a token for `asked` be had of a grant for these?
    ///
    /// # Errors
    /// When it was not allowed.
    pub fn check(&self, asked: &Self) -> Result<(), ResourceError> {
        let allowed = self.0.is_empty() || asked.0.iter().all(|asked| self.0.contains(asked));
        if allowed { Ok(()) } else { Err(ResourceError) }
    }

    /// As one text, for keeping.
    pub fn to_text(&self) -> String {
        self.0.join(" ")
    }

    /// From such a text.
    pub fn from_text(text: &str) -> Self {
        Self(text.split(' ').filter(|name| !name.is_empty()).map(str::to_owned).collect())
    }
}

/// Without one trailing slash: clients add and drop it as they like.
fn bare(name: &str) -> &str {
    name.strip_suffix('/').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: [&str; 3] =
        ["https://mcp.grabd.example/mcp", "https://api.grabd.example/v1", "https://grabd.example/v1"];

    #[test]
    fn only_our_own_names_with_or_without_one_slash() {
        for (asked, kept) in [
            (&[][..], Some("")),
            (&["https://mcp.grabd.example/mcp"], Some("https://mcp.grabd.example/mcp")),
            (&["https://mcp.grabd.example/mcp/"], Some("https://mcp.grabd.example/mcp")),
            (&["https://grabd.example/v1", "https://grabd.example/v1/"], Some("https://grabd.example/v1")),
            (
                &["https://api.grabd.example/v1", "https://mcp.grabd.example/mcp"],
                Some("https://api.grabd.example/v1 https://mcp.grabd.example/mcp"),
            ),
            (&["https://mcp.grabd.example/mcp//"], None),
            (&["https://mcp.grabd.example"], None),
            (&["https://mcp.grabd.example/mcp/x"], None),
            (&["https://mcp.grabd.example/MCP"], None),
            (&["https://mcp.grabd.example/mcp?x"], None),
            (&["https://mcp.grabd.example/mcp", "https://evil.example/"], None),
            (&[""], None),
            (&["/"], None),
        ] {
            let parsed = Resources::parse(asked.iter().copied(), &OURS).ok();
            assert_eq!(parsed.as_ref().map(Resources::to_text).as_deref(), kept, "{asked:?}");
            assert_eq!(parsed.as_ref().map(|some| Resources::from_text(&some.to_text())), parsed);
        }
    }

    #[test]
    fn a_token_is_for_what_was_allowed() {
        for (allowed, asked, good) in [
            ("", "", true),
            ("", "https://grabd.example/v1", true),
            ("https://grabd.example/v1", "", true),
            ("https://grabd.example/v1", "https://grabd.example/v1", true),
            ("https://grabd.example/v1", "https://mcp.grabd.example/mcp", false),
            ("https://grabd.example/v1", "https://grabd.example/v1 https://mcp.grabd.example/mcp", false),
        ] {
            let (allowed, asked) = (Resources::from_text(allowed), Resources::from_text(asked));
            assert_eq!(allowed.check(&asked).is_ok(), good, "{allowed:?} {asked:?}");
        }
    }
}
