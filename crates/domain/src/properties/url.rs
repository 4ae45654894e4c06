use std::net::IpAddr;

use super::address::is_public;
use super::invalid_field;
use crate::Code;
use crate::address::{Policy, check_port};
use crate::limits::URL_BYTES;
use crate::target::{TargetHost, TargetUrl, check_url};

/// Top-level labels that are never public.
const LOCAL: [&str; 10] =
    ["localhost", "local", "internal", "localdomain", "lan", "corp", "home", "intranet", "onion", "invalid"];

/// An accepted URL is normalized, and parsing it without a URL library yields a public host.
pub fn url(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let none = Policy::default();
    let accepted = match check_url(text, &none) {
        Ok(accepted) => accepted,
        Err(fault) => {
            assert!([Code::BadRequest, Code::SsrfDetected].contains(&fault.code()), "{text:?}: {fault:?}");
            assert_eq!(invalid_field(&fault), "url");
            return;
        }
    };
    let normalized = accepted.as_str();
    assert!(
        text.len() <= URL_BYTES && normalized.len() <= URL_BYTES,
        "{} bytes became {}",
        text.len(),
        normalized.len()
    );
    assert!(normalized.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\'), "{normalized:?}");
    assert_eq!(check_url(normalized, &none).ok().as_ref(), Some(&accepted), "{text:?} became {normalized:?}");
    assert_eq!(TargetUrl::restore(normalized).as_ref(), Some(&accepted), "{normalized:?}");

    let (scheme, rest) = normalized.split_once("://").expect("a URL has a scheme");
    let default_port = match scheme {
        "http" => 80,
        "https" => 443,
        other => panic!("unexpected scheme {other}"),
    };
    assert_eq!(accepted.is_https(), default_port == 443);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    assert!(!authority.contains('@'), "{normalized:?}");
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().expect("a port is a number")),
        _ => (authority, default_port),
    };
    assert_eq!(port, accepted.port(), "{normalized:?}");
    assert_eq!(check_port(port), Ok(()), "{normalized:?}");
    match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        Ok(address) => {
            assert!(is_public(address), "{text:?} became {normalized:?}");
            assert_eq!(accepted.host(), TargetHost::Address(address));
        }
        Err(_) => {
            let name = host.strip_suffix('.').unwrap_or(host);
            assert_public_name(name);
            assert_eq!(accepted.host(), TargetHost::Name(name.to_owned()));
        }
    }
}

fn assert_public_name(name: &str) {
    assert!(name.len() <= 253 && !name.bytes().any(|byte| byte.is_ascii_uppercase()), "{name:?}");
    let labels: Vec<&str> = name.split('.').collect();
    assert!(labels.len() > 1, "{name:?} is a local name");
    assert!(labels.iter().all(|label| (1..=63).contains(&label.len())), "{name:?}");
    let last = labels[labels.len() - 1];
    assert!(!LOCAL.contains(&last) && !labels.ends_with(&["home", "arpa"]), "{name:?} is never public");
    // Some resolvers parse such names as addresses.
    let number = match last.strip_prefix("0x") {
        Some(hex) => hex.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => last.bytes().all(|byte| byte.is_ascii_digit()),
    };
    assert!(!number, "{name:?} is a numeric address");
}
