//! Decides whether the main frame shows the requested page. Only the committed document counts: a navigation "succeeds"
//! even with the browser's own error page.

use grabd_domain::capture::{StatusDecision, StatusPolicy};
use grabd_domain::grabs::{Failure, FailureReason};
use grabd_domain::proxies::ProxyProblem;
use url::Url;

use crate::page::load::watch::{Document, Navigation};

const EMPTY: &str = "The address answered without a page.";
const DOWNLOAD: &str = "The address leads to a download, not to a page.";
const NO_CONTENT: &str = "The site sent header fields but no content.";
const REFUSED: &str = "The page led to an address that is not public.";
const OPTED_OUT: &str = "The site asks with the header X-Robots-Tag that no images of this page are made.";
const CHALLENGE: &str = "The site answered with a bot challenge.";

/// Why no connection to a host and port was made, as known by the egress guard and the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::page) enum Unreached {
    /// The guard refused it.
    Refused,
    /// The name could not be resolved.
    Unresolved,
    /// The connection failed.
    NotConnected,
    /// The lookup or the connection timed out.
    TimedOut,
    /// The proxy of the team did not connect to it.
    ByProxy(ProxyProblem),
}

/// Checks the current document. `unreached_reason` looks up the failed connections to a host and port.
///
/// # Errors
/// Why the document must not be captured.
pub(in crate::page) fn check(
    document: &Document,
    statuses: &StatusPolicy,
    unreached_reason: impl Fn(&str, u16) -> Option<Unreached>,
) -> Result<(), Failure> {
    if let Some(unreachable) = &document.unreachable_url {
        return Err(unreached_failure(unreachable, document.error.as_deref(), unreached_reason));
    }
    if look_up(&document.url, unreached_reason) == Some(Unreached::Refused) {
        return Err(Failure::new(FailureReason::SsrfDetected, REFUSED));
    }
    if !["http:", "https:"].iter().any(|scheme| document.url.starts_with(scheme)) {
        return Err(Failure::new(FailureReason::RenderFailed, "The page went to an address that is not on the web."));
    }
    let Some(head) = &document.head else { return Ok(()) };
    match statuses.decide(head.status, head.challenge.is_some()) {
        StatusDecision::Capture => Ok(()),
        StatusDecision::Blocked if head.challenge.is_some() => {
            Err(Failure::new(FailureReason::RenderBlocked, with_status(CHALLENGE, head.status)))
        }
        StatusDecision::Blocked => {
            let message = format!("The site refused to show the page (status {}).", head.status);
            Err(Failure::new(FailureReason::RenderBlocked, message))
        }
        StatusDecision::Unwanted => {
            let message = format!("The page has status {}, on which `fail_on_status` fails.", head.status);
            Err(Failure::new(FailureReason::RenderFailed, message))
        }
    }
}

/// Whether the site asks that no image of the document is made.
pub(in crate::page) fn opts_out(document: &Document) -> bool {
    document.head.as_ref().is_some_and(|head| head.opts_out)
}

/// The failure for a page whose site asks that no image is made.
pub(in crate::page) fn opt_out_failure() -> Failure {
    Failure::new(FailureReason::RenderBlocked, OPTED_OUT)
}

/// The failure for a page that looks like the challenge of a bot protection service.
pub(in crate::page) fn challenge_failure(document: &Document) -> Failure {
    let message = match &document.head {
        Some(head) => with_status(CHALLENGE, head.status),
        None => CHALLENGE.to_owned(),
    };
    Failure::new(FailureReason::RenderBlocked, message)
}

/// The failure for a document of which nothing came but its header fields.
pub(in crate::page) fn no_content_failure(document: &Document) -> Failure {
    let error = document.error.as_deref().map(|error| error.strip_prefix("net::").unwrap_or(error));
    Failure::new(FailureReason::RenderFailed, error.map_or(NO_CONTENT, describe))
}

/// The failure for a navigation that ended without a document.
pub(in crate::page) fn aborted_failure(
    navigation: &Navigation,
    download: bool,
    unreached_reason: impl Fn(&str, u16) -> Option<Unreached>,
) -> Failure {
    match &navigation.head {
        _ if download => Failure::new(FailureReason::RenderFailed, DOWNLOAD),
        Some(head) if head.is_attachment => Failure::new(FailureReason::RenderFailed, DOWNLOAD),
        Some(head) if matches!(head.status, 204 | 205) => {
            Failure::new(FailureReason::RenderFailed, with_status(EMPTY, head.status))
        }
        // To an address of an app, for example.
        Some(head) if (300..400).contains(&head.status) => {
            Failure::new(FailureReason::RenderFailed, describe("ERR_UNSAFE_REDIRECT"))
        }
        // Any other response that is not shown is a file that the browser would have saved.
        Some(_) => Failure::new(FailureReason::RenderFailed, DOWNLOAD),
        None => unreached_failure(&navigation.url, navigation.error.as_deref(), unreached_reason),
    }
}

/// The failure for a URL that could not be reached. `error` is the browser's error code.
pub(in crate::page) fn unreached_failure(
    url: &str,
    error: Option<&str>,
    unreached_reason: impl Fn(&str, u16) -> Option<Unreached>,
) -> Failure {
    // The browser only sees that its proxy closed the connection; the proxy knows the reason.
    let error = match look_up(url, unreached_reason) {
        Some(Unreached::Refused) => return Failure::new(FailureReason::SsrfDetected, REFUSED),
        Some(Unreached::Unresolved) => "ERR_NAME_NOT_RESOLVED",
        Some(Unreached::NotConnected) => "ERR_CONNECTION_REFUSED",
        Some(Unreached::TimedOut) => "ERR_TIMED_OUT",
        // Replaced by a message that names the proxy.
        Some(Unreached::ByProxy(_)) => "ERR_TUNNEL_CONNECTION_FAILED",
        None => error.map_or("", |error| error.strip_prefix("net::").unwrap_or(error)),
    };
    if error == "ERR_INVALID_AUTH_CREDENTIALS" {
        return Failure::new(FailureReason::RenderBlocked, "The site asks for a user name and password (status 401).");
    }
    Failure::new(FailureReason::RenderFailed, describe(error))
}

/// Whether the failure is that of a connection that ended too early, or of an answer that cannot be read.
pub(in crate::page) fn is_of_broken_connection(failure: &Failure) -> bool {
    let errors = ["ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE", "ERR_TUNNEL_CONNECTION_FAILED", "ERR_CONTENT_"];
    failure.reason == FailureReason::RenderFailed
        && errors.into_iter().map(describe).chain([NO_CONTENT]).any(|message| message == failure.message)
}

/// Why the connection to the host of `url` was not made. `None` if it was.
pub(in crate::page) fn look_up(
    url: &str,
    unreached_reason: impl Fn(&str, u16) -> Option<Unreached>,
) -> Option<Unreached> {
    let url = Url::parse(url).ok()?;
    let host = url.host_str()?.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
    unreached_reason(host, url.port_or_known_default()?)
}

fn with_status(sentence: &str, status: u16) -> String {
    format!("{} (status {status}).", sentence.trim_end_matches('.'))
}

/// Describes the browser's network errors for callers.
fn describe(error: &str) -> &'static str {
    match error {
        "ERR_NAME_NOT_RESOLVED" | "ERR_NAME_RESOLUTION_FAILED" => "The host name could not be resolved.",
        "ERR_CONNECTION_REFUSED" => "The site refused the connection.",
        "ERR_CONNECTION_RESET" | "ERR_CONNECTION_CLOSED" | "ERR_CONNECTION_ABORTED" => "The site broke the connection.",
        // The proxy also closes the connection if it cannot read the answer.
        "ERR_EMPTY_RESPONSE" => "The site closed the connection without an answer that can be read.",
        "ERR_TUNNEL_CONNECTION_FAILED" => "The site could not be reached.",
        "ERR_PROXY_CONNECTION_FAILED" => "The page asked for more than a capture may load.",
        "ERR_TIMED_OUT" | "ERR_CONNECTION_TIMED_OUT" => "The site did not answer in time.",
        "ERR_TOO_MANY_REDIRECTS" => "The site redirects in a circle.",
        "ERR_ABORTED" => EMPTY,
        "ERR_CERT_DATE_INVALID" => "The site's TLS certificate has expired or is not valid yet.",
        "ERR_CERT_COMMON_NAME_INVALID" => "The site's TLS certificate is for another host name.",
        "ERR_CERT_AUTHORITY_INVALID" => "The site's TLS certificate is not from a trusted authority.",
        "ERR_INVALID_REDIRECT" | "ERR_UNSAFE_REDIRECT" => "The site redirects to an address that is not on the web.",
        "ERR_CONTENT_DECODING_FAILED" | "ERR_CONTENT_DECODING_INIT_FAILED" => {
            "The content of the site's answer is not encoded as its Content-Encoding says."
        }
        "ERR_INVALID_RESPONSE" | "ERR_INVALID_HTTP_RESPONSE" => "The site's answer is not HTTP.",
        _ if error.starts_with("ERR_CERT_") => "The site's TLS certificate is not valid.",
        _ if error.starts_with("ERR_SSL_") => "A TLS connection to the site could not be made.",
        _ if error.starts_with("ERR_CONTENT_")
            || error.starts_with("ERR_HTTP2_")
            || error.starts_with("ERR_RESPONSE_") =>
        {
            "The site's answer could not be read."
        }
        _ if error.starts_with("ERR_BLOCKED_BY_") => "The site does not allow its page to be shown.",
        _ => "The page could not be loaded.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cdp::Head;

    fn document(url: &str) -> Document {
        let head = Some(Head { status: 200, ..Head::default() });
        Document { loader: "1".into(), url: url.into(), unreachable_url: None, error: None, head }
    }

    fn error_page(url: &str, error: &str) -> Document {
        Document {
            unreachable_url: Some(url.into()),
            error: Some(error.into()),
            head: None,
            ..document("chrome-error://")
        }
    }

    fn guard(host: &str, port: u16) -> Option<Unreached> {
        match (host, port) {
            ("10.0.0.5", 80) | ("::1", 8080) | ("metadata", 443) => Some(Unreached::Refused),
            ("gone.example", 80) => Some(Unreached::Unresolved),
            ("closed.example", 80) => Some(Unreached::NotConnected),
            ("slow.example", 443) => Some(Unreached::TimedOut),
            _ => None,
        }
    }

    #[test]
    fn check_blocks_denied_statuses() {
        for (status, reason) in [
            (200, None),
            (304, None),
            (404, None),
            (410, None),
            (500, None),
            (502, None),
            (401, Some(FailureReason::RenderBlocked)),
            (403, Some(FailureReason::RenderBlocked)),
            (407, Some(FailureReason::RenderBlocked)),
            (429, Some(FailureReason::RenderBlocked)),
            (503, Some(FailureReason::RenderBlocked)),
        ] {
            let page = Document { head: Some(Head { status, ..Head::default() }), ..document("https://a.example/") };
            let failure = check(&page, &StatusPolicy::default(), guard).err();
            assert_eq!(failure.as_ref().map(|failure| failure.reason), reason, "{status}");
            assert!(failure.is_none_or(|failure| failure.message.contains(&status.to_string())));
        }
    }

    #[test]
    fn check_rejects_error_pages_and_refused_addresses() {
        use FailureReason::{RenderBlocked, RenderFailed, SsrfDetected};
        for (page, reason) in [
            (document("about:blank"), RenderFailed),
            (document("data:text/html,x"), RenderFailed),
            (document("chrome-error://chromewebdata/"), RenderFailed),
            (document("http://10.0.0.5/x"), SsrfDetected),
            (error_page("http://10.0.0.5/", "net::ERR_EMPTY_RESPONSE"), SsrfDetected),
            (error_page("http://[::1]:8080/", "net::ERR_EMPTY_RESPONSE"), SsrfDetected),
            (error_page("https://metadata./", "net::ERR_TUNNEL_CONNECTION_FAILED"), SsrfDetected),
            (error_page("http://10.0.0.5:81/", "net::ERR_EMPTY_RESPONSE"), RenderFailed),
            (error_page("http://a.example/", "net::ERR_INVALID_AUTH_CREDENTIALS"), RenderBlocked),
        ] {
            assert_eq!(check(&page, &StatusPolicy::default(), guard).unwrap_err().reason, reason, "{page:?}");
        }
    }

    #[test]
    fn messages_contain_no_address() {
        let page = error_page("http://10.0.0.5/secret", "net::ERR_EMPTY_RESPONSE");
        let failure = check(&page, &StatusPolicy::default(), guard).unwrap_err();
        assert!(!failure.message.contains("10.0") && !failure.message.contains("secret"), "{}", failure.message);
    }

    #[test]
    fn network_errors_have_specific_messages() {
        for (error, part) in [
            ("net::ERR_NAME_NOT_RESOLVED", "host name"),
            ("net::ERR_CERT_DATE_INVALID", "expired"),
            ("net::ERR_CERT_REVOKED", "certificate"),
            ("net::ERR_SSL_PROTOCOL_ERROR", "TLS"),
            ("net::ERR_TOO_MANY_REDIRECTS", "circle"),
            ("net::ERR_CONNECTION_REFUSED", "refused the connection"),
            ("net::ERR_SOMETHING_NEW", "could not be loaded"),
        ] {
            let failure = unreached_failure("https://a.example/", Some(error), guard);
            assert!(failure.message.contains(part), "{error}: {}", failure.message);
        }
    }

    #[test]
    fn documents_without_content_have_the_reason() {
        let failure = |error: Option<&str>| {
            no_content_failure(&Document { error: error.map(Into::into), ..document("https://a.example/") }).message
        };
        assert!(failure(None).contains("header fields"), "{}", failure(None));
        let wrong = failure(Some("net::ERR_CONTENT_DECODING_FAILED"));
        assert!(wrong.contains("Content-Encoding"), "{wrong}");
        let cut = failure(Some("net::ERR_CONTENT_LENGTH_MISMATCH"));
        assert!(cut.contains("could not be read"), "{cut}");
    }

    #[test]
    fn proxy_reason_overrides_the_browser_error() {
        for (url, part) in [
            ("http://gone.example/", "host name"),
            ("http://closed.example/", "refused the connection"),
            ("https://slow.example/", "in time"),
            ("http://open.example/", "without an answer"),
        ] {
            let failure = unreached_failure(url, Some("net::ERR_EMPTY_RESPONSE"), guard);
            assert!(failure.message.contains(part), "{url}: {}", failure.message);
        }
    }

    #[test]
    fn aborted_navigations_are_failures() {
        let navigation = |head| Navigation {
            loader: "1".into(),
            url: "http://a.example/".into(),
            error: Some("net::ERR_ABORTED".into()),
            head,
        };
        let head = |status, is_attachment| Some(Head { status, is_attachment, ..Head::default() });
        for (navigation, download, part) in [
            (navigation(head(204, false)), false, "status 204"),
            (navigation(head(200, true)), false, "download"),
            (navigation(head(200, false)), false, "download"),
            (navigation(None), true, "download"),
            (navigation(None), false, "without a page"),
        ] {
            let failure = aborted_failure(&navigation, download, guard);
            assert_eq!(failure.reason, FailureReason::RenderFailed);
            assert!(failure.message.contains(part), "{}", failure.message);
        }
    }
}
