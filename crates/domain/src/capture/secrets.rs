//! Options that are encrypted while the grab is open, and never shown: what is sent to the target's origin only, where the
//! image is uploaded to, and what is typed into the page.

use std::fmt;

use grabd_options::{CaptureRequest, HIDDEN, Object, Secret, TABLE, Value};

use super::steps::{self, Step};
use crate::faults::{Fault, Field};
use crate::target::{TargetHost, TargetUrl};

/// The values of secret options, and the names of those that were given. The values are known while a grab is open, and
/// only to those who need them: stored and listed grabs have the names.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets {
    given: Vec<&'static str>,
    /// Names and values of headers. Names are in lower case.
    pub headers: Vec<(String, String)>,
    /// Cookies that the browser has from the beginning.
    pub cookies: Vec<Cookie>,
    /// User name and password.
    pub basic_auth: Option<BasicAuth>,
    /// The document that is captured instead of one at the URL.
    pub html: Option<String>,
    /// Where the image is uploaded to.
    pub upload_url: Option<UploadUrl>,
    /// What is done on the page before the shot.
    pub steps: Vec<Step>,
}

/// Where an image is uploaded to. Whoever knows it may write there.
#[derive(Clone, PartialEq, Eq)]
pub struct UploadUrl(pub TargetUrl);

impl UploadUrl {
    /// What is accepted, as the end of "must be …".
    pub const ALLOWED: &str =
        "an absolute https URL of a public address, without user name, on a port used by web sites";
}

/// The most bytes of a document of the caller.
const MAX_HTML_BYTES: usize = 1 << 20;

/// A cookie.
#[derive(Clone, PartialEq, Eq)]
pub struct Cookie {
    /// Name.
    pub name: String,
    /// Value.
    pub value: String,
    /// Domain that gets it with its subdomains, in lower case and without a leading dot. None is the target's host only.
    pub domain: Option<String>,
    /// Path that gets it.
    pub path: Option<String>,
    /// Whether it is sent over HTTPS only.
    pub secure: bool,
    /// Whether it is hidden from scripts.
    pub http_only: bool,
    /// Which requests of other sites have it.
    pub same_site: Option<SameSite>,
    /// When it expires, in seconds since 1970.
    pub expires: Option<i64>,
}

/// Which requests of other sites have a cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the standard")]
pub enum SameSite {
    Strict,
    Lax,
    None,
}

impl SameSite {
    /// The name in the standard.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "Strict",
            Self::Lax => "Lax",
            Self::None => "None",
        }
    }
}

/// User name and password for HTTP.
#[derive(Clone, PartialEq, Eq)]
pub struct BasicAuth {
    /// User name, without a colon.
    pub username: String,
    /// Password.
    pub password: String,
}

/// Only the names of what was given.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Secrets").field(&self.given).finish()
    }
}

impl fmt::Debug for UploadUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UploadUrl(…)")
    }
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cookie(…)")
    }
}

impl fmt::Debug for BasicAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BasicAuth(…)")
    }
}

impl Secrets {
    /// The secret options of a valid request.
    pub(super) fn of(request: &CaptureRequest) -> Option<Self> {
        let headers = request.headers.iter().flat_map(|Secret(headers)| headers);
        let header = |(name, value): (&String, &Value)| Some((name.to_ascii_lowercase(), text(Some(value))?));
        let cookies = request.cookies.iter().flat_map(|Secret(cookies)| cookies);
        let basic_auth = |Secret(object): &Secret<Object>| {
            let (username, password) = (text(object.get("username"))?, text(object.get("password"))?);
            Some(BasicAuth { username, password })
        };
        let mut secrets = Self {
            given: Vec::new(),
            headers: headers.map(header).collect::<Option<_>>()?,
            cookies: cookies.map(Cookie::of).collect::<Option<_>>()?,
            basic_auth: match &request.basic_auth {
                Some(object) => Some(basic_auth(object)?),
                None => None,
            },
            html: request.html.as_ref().map(|Secret(html)| html.clone()),
            upload_url: match &request.upload_url {
                Some(Secret(url)) => Some(UploadUrl(TargetUrl::restore(url)?)),
                None => None,
            },
            steps: steps::read(request.steps.iter().flat_map(|Secret(steps)| steps))?,
        };
        secrets.headers.sort_unstable();
        let is_given = |name: &str| match name {
            "headers" => !secrets.headers.is_empty(),
            "cookies" => !secrets.cookies.is_empty(),
            "html" => secrets.html.is_some(),
            "upload_url" => secrets.upload_url.is_some(),
            "steps" => !secrets.steps.is_empty(),
            _ => secrets.basic_auth.is_some(),
        };
        let names = TABLE.iter().filter(|option| option.is_secret).map(|option| option.name);
        secrets.given = names.filter(|name| is_given(name)).collect();
        Some(secrets)
    }

    /// Secrets of which only the names are known.
    pub(super) fn of_names(names: &[&'static str]) -> Self {
        let in_order = TABLE.iter().map(|option| option.name).filter(|name| names.contains(name));
        Self { given: in_order.collect(), ..Self::default() }
    }

    /// The same without the values.
    pub(super) fn withheld(&self) -> Self {
        Self { given: self.given.clone(), ..Self::default() }
    }

    /// The names of the secret options that were given, in the order of the table.
    pub fn given(&self) -> &[&'static str] {
        &self.given
    }

    /// The texts of steps that must not be in error messages.
    pub fn hidden_texts(&self) -> Vec<&str> {
        self.steps.iter().filter_map(Step::hidden_text).collect()
    }

    /// The names of the images that steps take, in the order of the steps.
    pub fn image_names(&self) -> Vec<String> {
        self.steps.iter().filter_map(Step::image_name).map(str::to_owned).collect()
    }

    pub(super) fn headers_option(&self) -> Option<Secret<Object>> {
        let headers = self.headers.iter().map(|(name, value)| (name.clone(), Value::Text(value.clone())));
        (!self.headers.is_empty()).then(|| Secret(headers.collect()))
    }

    pub(super) fn cookies_option(&self) -> Option<Secret<Vec<Object>>> {
        (!self.cookies.is_empty()).then(|| Secret(self.cookies.iter().map(Cookie::to_object).collect()))
    }

    pub(super) fn html_option(&self) -> Option<Secret<String>> {
        self.html.clone().map(Secret)
    }

    pub(super) fn upload_url_option(&self) -> Option<Secret<String>> {
        self.upload_url.as_ref().map(|UploadUrl(url)| Secret(url.as_str().to_owned()))
    }

    pub(super) fn steps_option(&self) -> Option<Secret<Vec<Object>>> {
        (!self.steps.is_empty()).then(|| Secret(self.steps.iter().map(Step::to_object).collect()))
    }

    pub(super) fn basic_auth_option(&self) -> Option<Secret<Object>> {
        let BasicAuth { username, password } = self.basic_auth.as_ref()?;
        let members = [("username", username), ("password", password)];
        Some(Secret(members.map(|(name, text)| (name.to_owned(), Value::Text(text.clone()))).into()))
    }
}

impl Cookie {
    fn of(object: &Object) -> Option<Self> {
        let flag = |name: &str| object.get(name) == Some(&Value::Flag(true));
        let same_site = text(object.get("same_site"));
        let names = [SameSite::Strict, SameSite::Lax, SameSite::None];
        Some(Self {
            name: text(object.get("name"))?,
            value: text(object.get("value"))?,
            domain: text(object.get("domain")).map(|domain| normalized_domain(&domain)),
            path: text(object.get("path")),
            secure: flag("secure"),
            http_only: flag("http_only"),
            same_site: names.into_iter().find(|of| same_site.as_deref() == Some(of.as_str())),
            expires: match object.get("expires") {
                Some(Value::Integer(expires)) => Some(*expires),
                _ => None,
            },
        })
    }

    fn to_object(&self) -> Object {
        let Self { name, value, domain, path, secure, http_only, same_site, expires } = self;
        let text = |text: &String| Value::Text(text.clone());
        let flag = |flag: &bool| flag.then_some(Value::Flag(true));
        let members = [
            ("name", Some(text(name))),
            ("value", Some(text(value))),
            ("domain", domain.as_ref().map(text)),
            ("path", path.as_ref().map(text)),
            ("secure", flag(secure)),
            ("http_only", flag(http_only)),
            ("same_site", same_site.map(|of| Value::Text(of.as_str().to_owned()))),
            ("expires", expires.map(Value::Integer)),
        ];
        members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}

/// Checks what depends on other options: the domains of cookies, and that there is one authorization only. Checks the
/// syntax of the URL for the upload.
pub(super) fn check(request: &CaptureRequest, url: &TargetUrl) -> Result<(), Fault> {
    let bad = |name, allowed: &str| Err(Fault::BadRequest(Field::new(name, HIDDEN, allowed)));
    if request.html.as_ref().is_some_and(|Secret(html)| html.len() > MAX_HTML_BYTES) {
        return bad("html", "a string of at most 1048576 bytes in UTF-8");
    }
    let names = request.headers.iter().flat_map(|Secret(headers)| headers.keys());
    if request.basic_auth.is_some() && names.into_iter().any(|name| name.eq_ignore_ascii_case("authorization")) {
        return bad("basic_auth", "left out where `headers` has an `Authorization`");
    }
    if let Some(Secret(upload_url)) = &request.upload_url
        && TargetUrl::parse(upload_url).is_err()
    {
        return bad("upload_url", UploadUrl::ALLOWED);
    }
    steps::check(request)?;
    let domains = request.cookies.iter().flat_map(|Secret(cookies)| cookies).filter_map(|cookie| cookie.get("domain"));
    let is_foreign = |domain: &Value| text(Some(domain)).is_none_or(|domain| !is_same_site(&domain, &url.host()));
    if domains.into_iter().any(is_foreign) {
        return bad(
            "cookies",
            "an array of cookies whose `domain`, if given, is within the registered domain of the URL",
        );
    }
    Ok(())
}

/// Whether the domain of a cookie belongs to the same registered domain as the host.
fn is_same_site(domain: &str, host: &TargetHost) -> bool {
    let domain = normalized_domain(domain);
    match host {
        TargetHost::Address(address) => domain == address.to_string(),
        TargetHost::Name(name) => {
            let registered = |name: &str| psl::domain_str(name).map(str::to_owned);
            domain == *name || (registered(&domain).is_some() && registered(&domain) == registered(name))
        }
    }
}

fn normalized_domain(domain: &str) -> String {
    domain.strip_prefix('.').unwrap_or(domain).to_ascii_lowercase()
}

fn text(value: Option<&Value>) -> Option<String> {
    if let Value::Text(text) = value? { Some(text.clone()) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::CaptureSpec;

    fn request(options: &[(&str, &str)]) -> CaptureRequest {
        let mut request = CaptureRequest { url: Some("https://www.shop.example.co.uk/".into()), ..Default::default() };
        for (name, json) in options {
            assert!(request.set(name, serde_json::from_str(json).unwrap()), "{name}");
        }
        request
    }

    const HEADERS: (&str, &str) = ("headers", r#"{"X-Token": "hidden-1", "Accept": "text/html"}"#);
    const COOKIES: (&str, &str) = ("cookies", r#"[{"name": "sid", "value": "hidden-2", "secure": true}]"#);
    const BASIC_AUTH: (&str, &str) = ("basic_auth", r#"{"username": "me", "password": "hidden-3"}"#);

    #[test]
    fn stored_and_logged_specs_have_no_secret_values() {
        let spec = CaptureSpec::parse(&request(&[HEADERS, COOKIES, BASIC_AUTH])).unwrap();
        let stored = serde_json::to_string(&spec).unwrap();
        assert!(stored.ends_with(r#""headers":true,"cookies":true,"basic_auth":true}"#), "{stored}");
        assert!(!format!("{spec:?}{stored}").contains("hidden"), "{spec:?}");
        let read: CaptureSpec = serde_json::from_str(&stored).unwrap();
        assert_eq!(read, spec.without_secrets());
        assert_eq!(read.secrets.given(), ["headers", "cookies", "basic_auth"]);
        assert!(read.secret_options().is_empty() && read.to_request().headers.is_none());
        assert_eq!(serde_json::to_string(&read).unwrap(), stored);
    }

    #[test]
    fn document_of_the_caller_is_a_secret_of_its_base_url() {
        let html = ("html", r#""<p>hidden</p>""#);
        let of = |options: &[(&str, &str)], url: Option<&str>| {
            CaptureSpec::parse(&CaptureRequest { url: url.map(str::to_owned), ..request(options) })
        };
        let plain = of(&[html], None).unwrap();
        assert_eq!(plain.url.as_str(), "https://html.example/");
        assert_eq!(plain.to_minimal_request().url, None);
        let based = of(&[html, ("base_url", r#""https://example.com/a""#)], None).unwrap();
        assert_eq!(based.url.as_str(), "https://example.com/a");
        assert_eq!(based.to_minimal_request().base_url.as_deref(), Some("https://example.com/a"));
        let stored = serde_json::to_string(&based).unwrap();
        assert!(stored.contains(r#""url":"https://example.com/a""#) && stored.ends_with(r#""html":true}"#), "{stored}");
        assert!(!format!("{based:?}{stored}").contains("hidden"));
        let read: CaptureSpec = serde_json::from_str(&stored).unwrap();
        assert!(read.has_own_document() && read.secrets.html.is_none());
        assert_eq!(read.with_secrets(based.secret_options()), Some(based.clone()));
        // As a renderer gets it.
        assert_eq!(CaptureSpec::restore(&based.to_request()), Some(based));
    }

    #[test]
    fn request_has_either_a_url_or_a_document() {
        let html = ("html", r#""<p>hidden</p>""#);
        let too_long = format!("\"{}\"", "é".repeat((1 << 19) + 1));
        // Options, the URL, and the field that the error names.
        type Case<'a> = (&'a [(&'a str, &'a str)], Option<&'a str>, &'a str);
        let refused: [Case<'_>; 6] = [
            (&[], None, "url"),
            (&[html], Some("https://example.com/"), "url"),
            (&[("html", "\"\"")], None, "html"),
            (&[("html", &too_long)], None, "html"),
            (&[html, ("base_url", "\"ftp://example.com/\"")], None, "base_url"),
            (&[("base_url", "\"https://example.com/\"")], Some("https://example.com/"), "base_url"),
        ];
        for (options, url, name) in refused {
            let fault =
                CaptureSpec::parse(&CaptureRequest { url: url.map(str::to_owned), ..request(options) }).unwrap_err();
            assert_eq!(fault.field().unwrap().name, name, "{fault}");
            assert!(!fault.to_string().contains("hidden"), "{fault}");
        }
        let longest = format!("\"{}\"", "é".repeat(1 << 19));
        assert!(CaptureSpec::parse(&CaptureRequest { url: None, ..request(&[("html", &longest)]) }).is_ok());
    }

    #[test]
    fn upload_url_is_a_secret() {
        let url = "https://bucket.example.com/a%20b.png?X-Sig=hidden%2F1&b=~";
        let spec = CaptureSpec::parse(&request(&[("upload_url", &format!("{url:?}"))])).unwrap();
        assert_eq!(spec.secrets.upload_url.as_ref().map(|UploadUrl(url)| url.as_str()), Some(url));
        let stored = serde_json::to_string(&spec).unwrap();
        assert!(stored.ends_with(r#""upload_url":true}"#), "{stored}");
        assert!(!format!("{spec:?}{stored}").contains("bucket"), "{spec:?}");
        let read: CaptureSpec = serde_json::from_str(&stored).unwrap();
        assert_eq!((read.secrets.given(), &read.secrets.upload_url), (&["upload_url"][..], &None));
        assert_eq!(read.with_secrets(spec.secret_options()), Some(spec));
        for refused in
            ["ftp://hidden.example/", "https://me:hidden@example.com/", "https://example.com:22/hidden", "hidden"]
        {
            let fault = CaptureSpec::parse(&request(&[("upload_url", &format!("{refused:?}"))])).unwrap_err();
            assert_eq!(fault.field().unwrap().name, "upload_url");
            assert!(!fault.to_string().contains("hidden"), "{fault}");
        }
    }

    #[test]
    fn secret_options_are_restored() {
        let spec = CaptureSpec::parse(&request(&[HEADERS, COOKIES, BASIC_AUTH])).unwrap();
        let json = serde_json::to_string(&spec.secret_options()).unwrap();
        let restored = spec.without_secrets().with_secrets(serde_json::from_str(&json).unwrap()).unwrap();
        assert_eq!(restored, spec);
        assert_eq!(restored.secrets.headers[1], ("x-token".to_owned(), "hidden-1".to_owned()));
        let other = [("width".to_owned(), Value::Integer(500))].into();
        assert_eq!(spec.with_secrets(other), None);
    }

    #[test]
    fn values_of_rejected_secrets_are_not_shown() {
        let authorization = ("headers", r#"{"authorization": "hidden"}"#);
        for (options, name) in [
            (&[("headers", r#"{"cookie": "hidden"}"#)][..], "headers"),
            (&[("cookies", r#"[{"name": "hidden"}]"#)], "cookies"),
            (&[("basic_auth", r#"{"username": "hidden:", "password": ""}"#)], "basic_auth"),
            (&[authorization, BASIC_AUTH], "basic_auth"),
        ] {
            let fault = CaptureSpec::parse(&request(options)).unwrap_err();
            assert_eq!(fault.field().unwrap().name, name);
            assert!(!fault.to_string().contains("hidden-") && !fault.to_string().contains("\"hidden"), "{fault}");
        }
        let unparsed = vec![("headers".to_owned(), "hidden".to_owned())];
        let fault = CaptureSpec::parse(&CaptureRequest { unparsed, ..request(&[]) }).unwrap_err();
        assert!(!fault.to_string().ends_with("hidden."), "{fault}");
    }

    #[test]
    fn cookie_domains_belong_to_the_registered_domain_of_the_target() {
        for (domain, is_accepted) in [
            ("www.shop.example.co.uk", true),
            ("shop.example.co.uk", true),
            (".Example.CO.uk", true),
            ("cdn.example.co.uk", true),
            ("co.uk", false),
            ("uk", false),
            ("other.co.uk", false),
            ("ample.co.uk", false),
            ("evil-example.co.uk", false),
        ] {
            let cookie = format!(r#"[{{"name": "a", "value": "b", "domain": "{domain}"}}]"#);
            let parsed = CaptureSpec::parse(&request(&[("cookies", &cookie)]));
            assert_eq!(parsed.is_ok(), is_accepted, "{domain}");
        }
        let address = TargetHost::Address("192.0.2.1".parse().unwrap());
        assert!(is_same_site("192.0.2.1", &address) && !is_same_site("2.1", &address));
    }
}
