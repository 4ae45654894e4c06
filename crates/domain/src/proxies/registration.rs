//! Validation of requests to create or change a proxy.

use super::proxy_url::ALLOWED;
use super::{LOGIN_BYTES, NAME_CHARS, ProxyLogin, ProxyUrl};
use crate::address::Policy;
use crate::capture::HIDDEN;
use crate::faults::{Fault, Field};

/// An unvalidated request to create or change a proxy. Absent members are not changed.
#[derive(Clone, Default)]
#[expect(missing_docs, reason = "the names of the API")]
pub struct ProxyRequest {
    pub name: Option<String>,
    pub url: Option<String>,
    pub username: Option<String>,
    pub password: Option<String>,
    /// Members with a value of the wrong type, and the received value.
    pub unparsed: Vec<(String, String)>,
}

/// A valid proxy to create.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the members of the proxy")]
pub struct NewProxy {
    pub name: String,
    pub url: ProxyUrl,
    pub login: Option<ProxyLogin>,
}

/// A valid change of a proxy. `None` members are not changed.
#[derive(Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the members of the proxy")]
pub struct ProxyChange {
    pub name: Option<String>,
    pub url: Option<ProxyUrl>,
    /// Empty: the proxy has no user name and password any more.
    pub username: Option<String>,
    pub password: Option<String>,
}

impl NewProxy {
    /// Validates a create in the order body, name, url, username, password.
    ///
    /// # Errors
    /// [`Fault::BadRequest`] or [`Fault::SsrfDetected`], with the first invalid member.
    pub fn parse(request: &ProxyRequest, policy: &Policy) -> Result<Self, Fault> {
        reject_unparsed(request, "body", "a JSON object")?;
        let name = name(request)?.ok_or_else(|| bad("name", "", &allowed_name()))?;
        let url = url(request, policy)?.ok_or_else(|| bad("url", "", ALLOWED))?;
        let change = ProxyChange { username: username(request)?, password: password(request)?, ..Default::default() };
        Ok(Self { name, url, login: change.login_after(None)? })
    }
}

impl ProxyChange {
    /// Validates a change in the order body, name, url, username, password.
    ///
    /// # Errors
    /// As [`NewProxy::parse`].
    pub fn parse(request: &ProxyRequest, policy: &Policy) -> Result<Self, Fault> {
        reject_unparsed(request, "body", "a JSON object")?;
        let (name, url) = (name(request)?, url(request, policy)?);
        Ok(Self { name, url, username: username(request)?, password: password(request)? })
    }

    /// Whether the user name or the password is changed.
    pub const fn has_login(&self) -> bool {
        self.username.is_some() || self.password.is_some()
    }

    /// Whether nothing of the former user name and password stays: they are removed, or both are replaced.
    pub fn replaces_login(&self) -> bool {
        let is_removed = self.username.as_deref() == Some("");
        is_removed || (self.username.is_some() && self.password.is_some())
    }

    /// The user name and password after this change of these. A new user name keeps the password, unless there is a new
    /// one.
    ///
    /// # Errors
    /// [`Fault::BadRequest`] when there is a password but no user name.
    pub fn login_after(&self, before: Option<ProxyLogin>) -> Result<Option<ProxyLogin>, Fault> {
        let (username, password) = match before {
            Some(ProxyLogin { username, password }) => (Some(username), password),
            None => (None, String::new()),
        };
        let username = self.username.clone().or(username).filter(|username| !username.is_empty());
        match (username, &self.password) {
            (None, Some(new)) if !new.is_empty() => {
                Err(bad("password", HIDDEN, "left out where the proxy has no `username`"))
            }
            (None, _) => Ok(None),
            (Some(username), new) => Ok(Some(ProxyLogin { username, password: new.clone().unwrap_or(password) })),
        }
    }
}

fn name(request: &ProxyRequest) -> Result<Option<String>, Fault> {
    reject_unparsed(request, "name", &allowed_name())?;
    let Some(text) = &request.name else { return Ok(None) };
    let name = text.trim();
    let is_valid = !name.is_empty() && name.chars().count() <= NAME_CHARS && !name.chars().any(char::is_control);
    match is_valid {
        true => Ok(Some(name.to_owned())),
        false => Err(bad("name", &format!("\"{text}\""), &allowed_name())),
    }
}

fn allowed_name() -> String {
    format!("a text of 1 to {NAME_CHARS} characters, without control characters")
}

fn url(request: &ProxyRequest, policy: &Policy) -> Result<Option<ProxyUrl>, Fault> {
    // The value may contain a password.
    if request.unparsed.iter().any(|(name, _)| name == "url") {
        return Err(bad("url", HIDDEN, ALLOWED));
    }
    let Some(text) = &request.url else { return Ok(None) };
    let url = ProxyUrl::parse(text)?;
    url.check_public(policy)?;
    Ok(Some(url))
}

fn username(request: &ProxyRequest) -> Result<Option<String>, Fault> {
    let allowed = format!("a text of at most {LOGIN_BYTES} bytes, without colons and control characters");
    let is_valid = |text: &str| is_login_text(text) && !text.contains(':');
    secret_text(request, "username", request.username.as_ref(), is_valid, &allowed)
}

fn password(request: &ProxyRequest) -> Result<Option<String>, Fault> {
    let allowed = format!("a text of at most {LOGIN_BYTES} bytes, without control characters");
    secret_text(request, "password", request.password.as_ref(), is_login_text, &allowed)
}

/// Reads a text that is not shown in errors.
fn secret_text(
    request: &ProxyRequest,
    name: &'static str,
    text: Option<&String>,
    is_valid: impl Fn(&str) -> bool,
    allowed: &str,
) -> Result<Option<String>, Fault> {
    let is_unparsed = request.unparsed.iter().any(|(member, _)| member == name);
    match text {
        _ if is_unparsed => Err(bad(name, HIDDEN, allowed)),
        Some(text) if !is_valid(text) => Err(bad(name, HIDDEN, allowed)),
        text => Ok(text.cloned()),
    }
}

fn is_login_text(text: &str) -> bool {
    text.len() <= LOGIN_BYTES && !text.chars().any(char::is_control)
}

fn reject_unparsed(request: &ProxyRequest, name: &'static str, allowed: &str) -> Result<(), Fault> {
    match request.unparsed.iter().find(|(member, _)| member == name) {
        Some((_, seen)) => Err(bad(name, seen, allowed)),
        None => Ok(()),
    }
}

fn bad(name: &'static str, seen: &str, allowed: &str) -> Fault {
    Fault::BadRequest(Field::new(name, seen, allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(members: [Option<&str>; 4]) -> ProxyRequest {
        let [name, url, username, password] = members.map(|text| text.map(str::to_owned));
        ProxyRequest { name, url, username, password, unparsed: Vec::new() }
    }

    fn login(username: &str, password: &str) -> Option<ProxyLogin> {
        Some(ProxyLogin { username: username.into(), password: password.into() })
    }

    const URL: Option<&str> = Some("http://proxy.example.com:3128");

    #[test]
    fn proxy_needs_a_name_and_a_url() {
        let policy = Policy::default();
        let new = NewProxy::parse(&request([Some(" Office "), URL, None, None]), &policy).unwrap();
        assert_eq!((new.name.as_str(), new.login), ("Office", None));
        let new = NewProxy::parse(&request([Some("Office"), URL, Some("me"), Some("hidden")]), &policy).unwrap();
        assert_eq!(new.login, login("me", "hidden"));
        assert!(!format!("{new:?}").contains("hidden"), "{new:?}");
        let long = "é".repeat(NAME_CHARS + 1);
        for (members, name) in [
            ([None, URL, None, None], "name"),
            ([Some(" "), URL, None, None], "name"),
            ([Some("a\nb"), URL, None, None], "name"),
            ([Some(long.as_str()), URL, None, None], "name"),
            ([Some("Office"), None, None, None], "url"),
            ([Some("Office"), Some("http://127.0.0.1:3128"), None, None], "url"),
            ([Some("Office"), URL, Some("hidden:"), None], "username"),
            ([Some("Office"), URL, Some("me"), Some("hidden\r\n")], "password"),
            ([Some("Office"), URL, None, Some("hidden")], "password"),
        ] {
            let fault = NewProxy::parse(&request(members), &policy).unwrap_err();
            assert_eq!(fault.field().unwrap().name, name, "{fault}");
            assert!(!fault.to_string().contains("hidden"), "{fault}");
        }
        for name in ["body", "name", "url", "username", "password"] {
            let is_secret = ["url", "username", "password"].contains(&name);
            let unparsed = vec![(name.to_owned(), "hidden".to_owned())];
            let request = ProxyRequest { unparsed, ..request([Some("Office"), URL, None, None]) };
            let create = NewProxy::parse(&request, &policy).unwrap_err();
            let change = ProxyChange::parse(&request, &policy).err().unwrap();
            for fault in [create, change] {
                assert_eq!(fault.field().unwrap().name, name);
                assert!(!(is_secret && fault.to_string().contains("hidden")), "{fault}");
            }
        }
    }

    #[test]
    fn change_of_the_login_keeps_what_is_left_out() {
        let after = |username: Option<&str>, password: Option<&str>, before| {
            let change = ProxyChange::parse(&request([None, None, username, password]), &Policy::default()).unwrap();
            change.login_after(before)
        };
        let before = || login("me", "old");
        assert_eq!(after(None, Some("new"), before()), Ok(login("me", "new")));
        assert_eq!(after(Some("you"), None, before()), Ok(login("you", "old")));
        assert_eq!(after(Some(""), None, before()), Ok(None));
        assert_eq!(after(Some(""), Some(""), before()), Ok(None));
        assert_eq!(after(Some("me"), None, None), Ok(login("me", "")));
        assert_eq!(after(Some(""), None, None), Ok(None));
        assert_eq!(after(None, None, None), Ok(None));
        assert!(after(None, Some("new"), None).is_err() && after(Some(""), Some("new"), before()).is_err());
    }
}
