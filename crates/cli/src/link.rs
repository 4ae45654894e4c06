//! `grab link`: makes a signed link, without a request to the service.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use grabd_options::LinkBar;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::json;
use sha2::Sha256;
use url::{Url, form_urlencoded};

use crate::args::LinkArgs;
use crate::failure::Failure;
use crate::output;
use crate::settings::Settings;

/// Length of a day in seconds.
const DAY_S: u64 = 24 * 60 * 60;
/// How long links are valid by default, in days.
const DEFAULT_DAYS: u64 = 30;

/// Prints a link.
pub(crate) fn link(settings: &Settings, as_json: bool, args: &LinkArgs) -> Result<(), Failure> {
    let missing = |what: &str, variable: &str| {
        Failure::Usage(format!(
            "there is no {what}; set {variable}. `grabd admin key link` and the page of the team's keys show it"
        ))
    };
    let key = settings.link_key.as_deref().ok_or_else(|| missing("link key", "GRAB_LINK_KEY"))?;
    let secret = settings.link_secret.as_deref().ok_or_else(|| missing("link secret", "GRAB_LINK_SECRET"))?;
    let expires = args.expires.unwrap_or_else(|| default_expiry(now()));
    let url = signed(&settings.base, key, secret, args, expires)?;
    match as_json {
        true => output::line(&json!({ "url": url.as_str(), "expires": expires }).to_string()),
        false => output::line(url.as_str()),
    }
}

/// The end of a day, so that all links of a day are the same, and caches keep their images.
fn default_expiry(now: Duration) -> u64 {
    (now.as_secs() / DAY_S + DEFAULT_DAYS + 1) * DAY_S
}

#[expect(clippy::disallowed_methods, reason = "the command line has no caller that could pass in the time")]
fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

fn signed(base: &Url, key: &str, secret: &str, args: &LinkArgs, expires: u64) -> Result<Url, Failure> {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("key", key).append_pair("url", &args.url);
    if let Some(format) = args.format {
        query.append_pair("format", format.as_str());
    }
    for (name, value) in &args.options.0 {
        let flag = name.replace('_', "-");
        let why = match grabd_options::find(name).map(|option| (option, option.refused_in_links())) {
            Some((option, None)) => {
                query.append_pair(name, &option.kind.to_text(value));
                continue;
            }
            Some((_, Some(LinkBar::OnlyImage))) => "whose answer is only an image",
            Some((_, Some(LinkBar::Published))) | None => "which is made to be published",
        };
        return Err(Failure::Usage(format!("--{flag} cannot be in a link, {why}")));
    }
    if args.placeholder_on_error {
        query.append_pair("on_error", "placeholder");
    }
    query.append_pair("expires", &expires.to_string());
    let query = query.finish();
    let mut url = base.join("shot").map_err(|error| Failure::Usage(format!("the base URL has no path: {error}")))?;
    url.set_query(Some(&format!("{query}&sig={}", signature(secret, &query))));
    Ok(url)
}

/// HMAC-SHA256 in lower-case hexadecimal digits.
fn signature(secret: &str, query: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC accepts keys of any length");
    mac.update(query.as_bytes());
    mac.finalize().into_bytes().iter().fold(String::new(), |mut digits, byte| {
        _ = write!(digits, "{byte:02x}");
        digits
    })
}

#[cfg(test)]
mod tests {
    use grabd_options::Value;

    use super::*;
    use crate::options::OptionArgs;

    fn args(options: Vec<(&'static str, Value)>) -> LinkArgs {
        LinkArgs {
            url: "https://example.com/?a=b&c".to_owned(),
            link_key: None,
            link_secret: None,
            expires: None,
            placeholder_on_error: false,
            format: None,
            options: OptionArgs(options),
        }
    }

    fn link(args: &LinkArgs) -> Result<String, Failure> {
        let base = Url::parse("https://grabd.example/v1/").unwrap();
        signed(&base, "lk_a", "gls_a", args, 1_795_206_775).map(String::from)
    }

    #[test]
    fn link_has_encoded_members_and_the_signature_of_their_bytes_at_its_end() {
        let texts = vec![".a".to_owned(), "b > c".to_owned()];
        let link = link(&args(vec![("full_page", Value::Flag(true)), ("hide", Value::Texts(texts))])).unwrap();
        let query = "key=lk_a&url=https%3A%2F%2Fexample.com%2F%3Fa%3Db%26c&full_page=true&hide=.a%0Ab+%3E+c\
                     &expires=1795206775";
        // printf %s "$query" | openssl dgst -sha256 -hmac gls_a
        let expected = format!(
            "https://grabd.example/v1/shot?{query}&sig=a5f7861417d36bc8069aa67cde1dcb04a56f6f9981e3aa0c654dc20d7d9a03d5"
        );
        assert_eq!(link, expected);
    }

    #[test]
    fn secret_options_are_refused() {
        let script = args(vec![("script", Value::Text("1".to_owned()))]);
        assert!(link(&script).unwrap_err().message().contains("--script"));
        let expression = args(vec![("wait_for_expression", Value::Text("1".to_owned()))]);
        assert!(link(&expression).unwrap_err().message().contains("--wait-for-expression"));
        let headers = args(vec![("headers", Value::Object([("a".to_owned(), Value::Text("b".to_owned()))].into()))]);
        assert!(link(&headers).unwrap_err().message().contains("--headers"));
    }

    #[test]
    fn links_of_one_day_expire_at_the_same_time() {
        let at = |seconds| default_expiry(Duration::from_secs(seconds));
        assert_eq!(at(0), 31 * DAY_S);
        assert_eq!(at(DAY_S - 1), 31 * DAY_S);
        assert_eq!(at(DAY_S), 32 * DAY_S);
    }
}
