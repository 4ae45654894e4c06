//! Resource indicators (RFC 8707). There is one resource server with several identifiers.

/// Requested resource identifiers, without trailing slashes. Empty if the client named none, which means all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources(Vec<String>);

/// An unknown resource, or one that the grant does not include.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("There is no such resource here, or it is not one that was allowed.")]
pub struct ResourceError;

impl Resources {
    /// Parses the resources of a request. `known` are the server's identifiers.
    ///
    /// # Errors
    /// If one of them is unknown.
    pub fn parse<'a>(requested: impl IntoIterator<Item = &'a str>, known: &[&str]) -> Result<Self, ResourceError> {
        let mut resources = Vec::new();
        for requested in requested {
            let named = without_slash(requested);
            if !known.iter().any(|known| without_slash(known) == named) {
                return Err(ResourceError);
            }
            if !resources.iter().any(|resource| resource == named) {
                resources.push(named.to_owned());
            }
        }
        Ok(Self(resources))
    }

    /// Checks that a grant for these resources allows a token for `requested`.
    ///
    /// # Errors
    /// If it does not.
    pub fn check(&self, requested: &Self) -> Result<(), ResourceError> {
        let allowed = self.0.is_empty() || requested.0.iter().all(|requested| self.0.contains(requested));
        if allowed { Ok(()) } else { Err(ResourceError) }
    }

    /// The stored form: identifiers separated by spaces.
    pub fn to_text(&self) -> String {
        self.0.join(" ")
    }

    /// Parses the stored form.
    pub fn from_text(text: &str) -> Self {
        Self(text.split(' ').filter(|name| !name.is_empty()).map(str::to_owned).collect())
    }
}

/// Removes one trailing slash. Clients add and omit it.
fn without_slash(name: &str) -> &str {
    name.strip_suffix('/').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 3] =
        ["https://mcp.grabd.example/mcp", "https://api.grabd.example/v1", "https://grabd.example/v1"];

    #[test]
    fn parse_accepts_known_identifiers_with_or_without_a_slash() {
        for (requested, stored) in [
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
            let parsed = Resources::parse(requested.iter().copied(), &KNOWN).ok();
            assert_eq!(parsed.as_ref().map(Resources::to_text).as_deref(), stored, "{requested:?}");
            assert_eq!(parsed.as_ref().map(|some| Resources::from_text(&some.to_text())), parsed);
        }
    }

    #[test]
    fn check_allows_only_granted_resources() {
        for (granted, requested, allowed) in [
            ("", "", true),
            ("", "https://grabd.example/v1", true),
            ("https://grabd.example/v1", "", true),
            ("https://grabd.example/v1", "https://grabd.example/v1", true),
            ("https://grabd.example/v1", "https://mcp.grabd.example/mcp", false),
            ("https://grabd.example/v1", "https://grabd.example/v1 https://mcp.grabd.example/mcp", false),
        ] {
            let (granted, requested) = (Resources::from_text(granted), Resources::from_text(requested));
            assert_eq!(granted.check(&requested).is_ok(), allowed, "{granted:?} {requested:?}");
        }
    }
}
