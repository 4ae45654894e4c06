//! Heads of requests and responses.

use grabd_domain::grabs::Challenge;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::robots_tag::opts_out;

/// Maximum length of a `Refresh` header. Longer URLs are not followed.
const REFRESH_CHARS: usize = 4096;

/// What an archive of requests has of a request, beside what its event has.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RequestDetails {
    pub(crate) method: String,
    /// The JSON object of its headers, before the caller's are added. It is only read if requests are archived.
    pub(crate) headers: Option<Box<str>>,
    /// When it began, in milliseconds since 1970.
    pub(crate) began_ms: i64,
    /// The response that redirected to it.
    pub(crate) redirect: Option<ResponseDetails>,
}

/// What an archive of requests has of a response, beside what its event has.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ResponseDetails {
    pub(crate) headers: Map<String, Value>,
    pub(crate) status_text: String,
    pub(crate) media_type: String,
    pub(crate) protocol: String,
    /// Of an encrypted connection.
    pub(crate) security: Option<SecurityDetails>,
}

/// An encrypted connection as the browser describes it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SecurityDetails {
    /// `TLS 1.3` and others.
    pub(crate) protocol: String,
    /// The common name of the authority that has issued the certificate.
    pub(crate) issuer: String,
    /// When the certificate expires, in seconds since 1970.
    pub(crate) valid_to: f64,
}

/// The parts of response headers that are used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// The HTTP status.
    pub(crate) status: u16,
    /// Whether `Content-Disposition` is `attachment`.
    pub(crate) is_attachment: bool,
    /// Whether the content is a PDF.
    pub(crate) is_pdf: bool,
    /// The bot protection service that marked the response as its challenge.
    pub(crate) challenge: Option<Challenge>,
    /// The value of a `Refresh` header.
    pub(crate) refresh: Option<String>,
    /// Whether the site asks that no image of the page is made.
    pub(crate) opts_out: bool,
}

/// A response as the browser describes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Response {
    pub(super) status: u16,
    #[serde(default)]
    headers: Map<String, Value>,
    #[serde(default)]
    status_text: String,
    #[serde(default)]
    mime_type: String,
    #[serde(default)]
    protocol: String,
    security_details: Option<SecurityDetails>,
}

impl Response {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).and_then(|(_, value)| value.as_str())
    }

    /// Length of the body, if it is not compressed.
    pub(super) fn length(&self) -> Option<u64> {
        match self.header("content-encoding") {
            None => self.header("content-length")?.trim().parse().ok(),
            Some(_) => None,
        }
    }

    pub(super) fn head(&self) -> Head {
        let header = |name: &str| self.header(name);
        Head {
            status: self.status,
            is_attachment: header("content-disposition")
                .is_some_and(|value| value.trim_start().starts_with("attachment")),
            is_pdf: self.mime_type.eq_ignore_ascii_case("application/pdf"),
            challenge: challenge(header),
            refresh: header("refresh").map(|value| value.chars().take(REFRESH_CHARS).collect()),
            opts_out: header("x-robots-tag").is_some_and(opts_out),
        }
    }

    /// What is recorded about it.
    pub(super) fn into_details(self) -> ResponseDetails {
        let Self { status: _, headers, status_text, mime_type, protocol, security_details: security } = self;
        ResponseDetails { headers, status_text, media_type: mime_type, protocol, security }
    }
}

/// The service whose headers mark a response as its challenge. Headers that only show that a service is used are no sign.
fn challenge<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Option<Challenge> {
    let is = |name, values: &[&str]| header(name).is_some_and(|value| values.contains(&value.trim()));
    let marks = [
        (Challenge::Cloudflare, is("cf-mitigated", &["challenge"])),
        (Challenge::Vercel, is("x-vercel-mitigated", &["challenge"])),
        (Challenge::Aws, is("x-amzn-waf-action", &["challenge", "captcha"])),
        (Challenge::Datadome, is("x-dd-b", &["1", "2"])),
    ];
    marks.into_iter().find(|(_, is_marked)| *is_marked).map(|(challenge, _)| challenge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encrypted_connection_is_described() {
        let response =
            |more: &str| -> Response { serde_json::from_str(&format!(r#"{{"status":200{more}}}"#)).unwrap() };
        assert_eq!(response("").into_details().security, None);
        let more = r#","securityDetails":{"protocol":"TLS 1.3","issuer":"R11","validFrom":1,"validTo":2,"sanList":[]}"#;
        let described = SecurityDetails { protocol: "TLS 1.3".into(), issuer: "R11".into(), valid_to: 2.0 };
        assert_eq!(response(more).into_details().security, Some(described));
    }

    #[test]
    fn pdfs_are_known_by_their_media_type() {
        let is_pdf = |json: &str| serde_json::from_str::<Response>(json).unwrap().head().is_pdf;
        assert!(is_pdf(r#"{"status":200,"mimeType":"application/pdf"}"#));
        assert!(!is_pdf(r#"{"status":200,"mimeType":"text/html","headers":{"x":"application/pdf"}}"#));
    }

    #[test]
    fn challenge_headers_name_their_service() {
        let challenge = |headers: &str| serde_json::from_str::<Response>(headers).unwrap().head().challenge;
        for (headers, expected) in [
            (r#"{"x-vercel-mitigated":"challenge"}"#, Some(Challenge::Vercel)),
            (r#"{"X-Amzn-Waf-Action":"captcha"}"#, Some(Challenge::Aws)),
            (r#"{"x-dd-b":"2"}"#, Some(Challenge::Datadome)),
            (r#"{"x-datadome":"protected","x-amzn-requestid":"1","cf-mitigated":"pass"}"#, None),
        ] {
            assert_eq!(challenge(&format!(r#"{{"status":200,"headers":{headers}}}"#)), expected, "{headers}");
        }
    }
}
