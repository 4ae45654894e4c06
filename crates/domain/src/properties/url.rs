use std::net::IpAddr;

use super::address::is_public;
use super::named;
use crate::Code;
use crate::address::{Policy, check_port};
use crate::limits::URL_BYTES;
use crate::target::{TargetHost, TargetUrl, check_url};

/// Last labels of names that no public site has.
const LOCAL: [&str; 10] =
    ["localhost", "local", "internal", "localdomain", "lan", "corp", "home", "intranet", "onion", "invalid"];

/// What is admitted is its own normal form, which a reader without a URL library finds to name a public host.
pub fn url(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let none = Policy::default();
    let admitted = match check_url(text, &none) {
        Ok(admitted) => admitted,
        Err(fault) => {
            assert!([Code::BadRequest, Code::SsrfDetected].contains(&fault.code()), "{text:?}: {fault:?}");
            assert_eq!(named(&fault), "url");
            return;
        }
    };
    let form = admitted.as_str();
    assert!(text.len() <= URL_BYTES && form.len() <= URL_BYTES, "{} bytes became {}", text.len(), form.len());
    assert!(form.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\'), "{form:?}");
    assert_eq!(check_url(form, &none).ok().as_ref(), Some(&admitted), "{text:?} became {form:?}");
    assert_eq!(TargetUrl::restore(form).as_ref(), Some(&admitted), "{form:?}");

    let (scheme, rest) = form.split_once("://").expect("an address has a scheme");
    let default_port = match scheme {
        "http" => 80,
        "https" => 443,
        other => panic!("{other} is not for the web"),
    };
    assert_eq!(admitted.is_https(), default_port == 443);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    assert!(!authority.contains('@'), "{form:?}");
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().expect("a port is a number")),
        _ => (authority, default_port),
    };
    assert_eq!(port, admitted.port(), "{form:?}");
    assert_eq!(check_port(port), Ok(()), "{form:?}");
    match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        Ok(address) => {
            assert!(is_public(address), "{text:?} became {form:?}");
            assert_eq!(admitted.host(), TargetHost::Address(address));
        }
        Err(_) => {
            let name = host.strip_suffix('.').unwrap_or(host);
            is_a_public_name(name);
            assert_eq!(admitted.host(), TargetHost::Name(name.to_owned()));
        }
    }
}

fn is_a_public_name(name: &str) {
    assert!(name.len() <= 253 && !name.bytes().any(|byte| byte.is_ascii_uppercase()), "{name:?}");
    let labels: Vec<&str> = name.split('.').collect();
    assert!(labels.len() > 1, "{name:?} is of a local network");
    assert!(labels.iter().all(|label| (1..=63).contains(&label.len())), "{name:?}");
    let last = labels[labels.len() - 1];
    assert!(!LOCAL.contains(&last) && !labels.ends_with(&["home", "arpa"]), "{name:?} is never public");
    // Some resolver would take it for an address.
    let number = match last.strip_prefix("0x") {
        Some(hex) => hex.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => last.bytes().all(|byte| byte.is_ascii_digit()),
    };
    assert!(!number, "{name:?} is a number in disguise");
}
