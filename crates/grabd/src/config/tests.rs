use super::*;

fn with(overlay: &[(&'static str, &str)]) -> Result<Config, String> {
    let overlay = overlay.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
    Config::with(&overlay).map_err(|problems| problems.to_string())
}

#[test]
fn the_defaults_are_valid() {
    let config = with(&[]).unwrap();
    assert_eq!(config.http.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.limits.requests_per_minute, 60);
    assert_eq!(config.database_url(), "sqlite://./data/grabd.db");
    assert!(config.slots() >= 2);
}

#[test]
fn lists_may_have_commas() {
    let config = with(&[("egress.allow_cidrs", "127.0.0.2/32, 10.0.0.0/8"), ("egress.dns", "127.0.0.2:5353")]).unwrap();
    assert_eq!(config.egress.allow_cidrs.len(), 2);
    assert_eq!(config.egress.dns.len(), 1);
}

#[test]
fn what_is_wrong_is_named_with_its_key() {
    for (key, value, named) in [
        ("http.listne", "127.0.0.1:1", "listne"),
        ("limits.requests_per_minute", "0", "limits.requests_per_minute"),
        ("egress.allow_cidrs", "127.0.0.2", "127.0.0.2"),
        ("http.listen", "nowhere", "http.listen"),
        ("http.public_url", "https://a.example/path", "http.public_url"),
        ("http.connections_per_address", "0", "http.connections_per_address"),
        ("grpc.calls_per_address", "-1", "calls_per_address"),
        ("http.security_contact", "security@a.example", "http.security_contact"),
        ("database.url", "mysql://x", "database.url"),
        ("browser.slots", "65", "browser.slots"),
        ("browser.memory_limit_megabytes", "511", "browser.memory_limit_megabytes"),
        ("browser.process_limit", "199", "browser.process_limit"),
        ("capture.full_page_max_height_px", "20000", "capture.full_page_max_height_px"),
    ] {
        let problems = with(&[(key, value)]).unwrap_err();
        assert!(problems.contains(named), "{key}: {problems}");
    }
}

#[test]
fn several_problems_are_told_at_once() {
    let problems = with(&[("limits.async_queue", "0"), ("browser.settle_ms", "0")]).unwrap_err();
    assert!(problems.contains("limits.async_queue") && problems.contains("browser.settle_ms"), "{problems}");
}

#[test]
fn passwords_are_not_shown() {
    let config = with(&[("database.url", "postgres://u:hunter2@h/n")]).unwrap();
    assert!(!format!("{config:?}").contains("hunter2"));
    assert_eq!(config.database_url(), "postgres://u:hunter2@h/n");
}
