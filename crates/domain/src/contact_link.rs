//! Links to the operator: whom people can write to, and pages about the service.

use url::Url;

/// Maximum length in bytes.
const MAX_BYTES: usize = 300;

/// An e-mail address or a page of the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContactLink(String);

/// The text is not a contact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be an e-mail address such as abuse@example.com, or an https URL, of at most {MAX_BYTES} characters")]
pub struct ContactLinkError;

impl ContactLink {
    /// Parses an e-mail address or an https URL.
    ///
    /// # Errors
    /// If it is neither.
    pub fn parse(text: &str) -> Result<Self, ContactLinkError> {
        if text.len() > MAX_BYTES {
            return Err(ContactLinkError);
        }
        if is_email(text) {
            return Ok(Self(format!("mailto:{text}")));
        }
        let url = Url::parse(text).map_err(|_| ContactLinkError)?;
        let is_page = url.scheme() == "https" && url.username().is_empty() && url.password().is_none();
        if is_page { Ok(Self(url.into())) } else { Err(ContactLinkError) }
    }

    /// The target of a link: a `mailto:` or https URL.
    pub fn href(&self) -> &str {
        &self.0
    }
}

/// What the operator says about the service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceLinks {
    /// Whom users can write to.
    pub support: Option<ContactLink>,
    /// The terms of service.
    pub terms: Option<ContactLink>,
    /// What is stored about users.
    pub privacy: Option<ContactLink>,
    /// Who runs the service.
    pub imprint: Option<ContactLink>,
    /// Whether the service works.
    pub status: Option<ContactLink>,
}

/// Whether the text is an e-mail address that needs no escaping in a `mailto:` URL (RFC 6068).
fn is_email(text: &str) -> bool {
    let is_plain = |part: &str| {
        let is_first = part.starts_with(|c: char| c.is_ascii_alphanumeric());
        is_first && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte))
    };
    matches!(text.split_once('@'), Some((local, domain)) if is_plain(local) && is_plain(domain) && !domain.contains('+'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contact_is_an_email_address_or_an_https_url() {
        for (text, expected) in [
            ("abuse@example.com", Some("mailto:abuse@example.com")),
            ("abuse+grabd@mail.example.com", Some("mailto:abuse+grabd@mail.example.com")),
            ("https://example.com/abuse?x=y", Some("https://example.com/abuse?x=y")),
            ("https://example.com", Some("https://example.com/")),
            ("", None),
            ("abuse", None),
            ("a@b@c", None),
            ("abuse@example.com?cc=x@example.com", None),
            ("mailto:abuse@example.com", None),
            ("http://example.com/abuse", None),
            ("javascript:alert(1)", None),
            ("https://user@example.com", None),
            ("https://", None),
        ] {
            let parsed = ContactLink::parse(text);
            assert_eq!(parsed.as_ref().map(ContactLink::href).ok(), expected, "{text}");
        }
        assert!(ContactLink::parse(&format!("https://example.com/{}", "x".repeat(MAX_BYTES))).is_err());
    }
}
