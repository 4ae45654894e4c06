use super::*;

fn with(overlay: &[(&'static str, &str)]) -> Result<Config, String> {
    let overlay = overlay.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
    Config::with(&overlay).map_err(|problems| problems.to_string())
}

#[test]
fn defaults_are_valid() {
    let config = with(&[]).unwrap();
    assert_eq!(config.http.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.limits.requests_per_minute, 60);
    assert_eq!(config.database_url(), "sqlite://./data/grabd.db");
    assert!(config.slots() >= 2);
}

#[test]
fn lists_may_be_comma_separated() {
    let config = with(&[("egress.allow_cidrs", "127.0.0.2/32, 10.0.0.0/8"), ("egress.dns", "127.0.0.2:5353")]).unwrap();
    assert_eq!(config.egress.allow_cidrs.len(), 2);
    assert_eq!(config.egress.dns.len(), 1);
}

#[test]
fn invalid_settings_are_reported_with_their_key() {
    for (key, value, named) in [
        ("http.listne", "127.0.0.1:1", "listne"),
        ("limits.requests_per_minute", "0", "limits.requests_per_minute"),
        ("egress.allow_cidrs", "127.0.0.2", "127.0.0.2"),
        ("http.listen", "nowhere", "http.listen"),
        ("http.public_url", "https://a.example/path", "http.public_url"),
        ("http.connections_per_address", "0", "http.connections_per_address"),
        ("grpc.calls_per_address", "-1", "calls_per_address"),
        ("http.security_contact", "security@a.example", "http.security_contact"),
        ("oauth.auth_url", "https://a.example/path", "oauth.auth_url"),
        ("oauth.auth_url", "http://a.example", "oauth.auth_url"),
        ("oauth.auth_url", "https://u@a.example", "oauth.auth_url"),
        ("oauth.mcp_url", "http://a.example/mcp", "oauth.mcp_url"),
        ("oauth.mcp_url", "https://a.example/mcp?x", "oauth.mcp_url"),
        ("oauth.mcp_url", "a.example/mcp", "oauth.mcp_url"),
        ("oauth.refresh_reuse_grace_s", "301", "oauth.refresh_reuse_grace_s"),
        ("oauth.registrations_per_hour", "0", "oauth.registrations_per_hour"),
        ("oauth.unused_clients", "0", "oauth.unused_clients"),
        ("accounts.sign_up", "perhaps", "sign_up"),
        ("accounts.trial_credits", "10", "accounts.trial_credits"),
        ("accounts.trial_credits", "-1", "trial_credits"),
        ("mcp.allowed_origins", "https://a.example/path", "mcp.allowed_origins"),
        ("evidence.timestamp_url", "tsa.example.com", "evidence.timestamp_url"),
        ("mail.smtp_url", "mail.example.com", "mail.smtp_url"),
        ("mail.smtp_url", "smtp://u:hunter2@mail.example.com", "since it has a password"),
        ("mail.smtp_url", "smtp://mail.example.com", "mail.from"),
        ("database.url", "mysql://x", "database.url"),
        ("billing.stripe_secret_key", "pk_live_x", "billing.stripe_secret_key"),
        ("billing.stripe_secret_key", "sk_live_x", "billing.stripe_webhook_secret"),
        ("billing.stripe_webhook_secret", "whsec_x", "billing.stripe_secret_key"),
        ("billing.stripe_webhook_secret", "whsec_x,sk_live_x", "billing.stripe_webhook_secret"),
        ("billing.stripe_api_base", "http://api.stripe.com", "billing.stripe_api_base"),
        ("billing.stripe_api_base", "https://api.stripe.com/v1", "billing.stripe_api_base"),
        ("abuse.failed_seconds_per_minute", "0", "abuse.failed_seconds_per_minute"),
        ("abuse.failed_seconds_per_minute_unpaid", "0", "abuse.failed_seconds_per_minute_unpaid"),
        ("abuse.paid_slots_percent", "101", "abuse.paid_slots_percent"),
        ("abuse.contact", "http://a.example/abuse", "abuse.contact"),
        ("abuse.respect_opt_out", "sometimes", "respect_opt_out"),
        ("browser.slots", "65", "browser.slots"),
        ("browser.memory_limit_megabytes", "511", "browser.memory_limit_megabytes"),
        ("browser.process_limit", "199", "browser.process_limit"),
        ("browser.user_agent", "a\tb", "browser.user_agent"),
        ("browser.identity", "hidden", "identity"),
        ("browser.identity", "signed", "`browser.identity` must be none, unless"),
        ("browser.identity", "signed_text", "`browser.identity` must be none, unless"),
        ("browser.identity_url", "http://a.example", "browser.identity_url"),
        ("browser.identity_url", "https://a.example/path", "browser.identity_url"),
        ("capture.full_page_max_height_px", "20000", "capture.full_page_max_height_px"),
        ("capture.image_max_megabytes", "0", "capture.image_max_megabytes"),
        ("capture.image_max_megabytes", "127", "capture.image_max_megabytes"),
        ("capture.image_memory_megabytes", "63", "capture.image_memory_megabytes"),
        ("capture.image_memory_megabytes", "16385", "capture.image_memory_megabytes"),
        ("images.url", "s3://Bucket", "images.url"),
        ("images.url", "/var/lib/images", "`images.url` must be empty, file:///absolute/path, or s3://"),
        ("images.fallback_url", "ftp://bucket", "images.fallback_url"),
        ("images.url", "file:///x/%20", "got file:///x/%20\n`grabd config`"),
        ("images.endpoint", "https://s3.example.com/bucket", "images.endpoint"),
        ("images.access_key_id", "id", "set exactly if images.secret_access_key is set"),
        ("images.secret_access_key", "secret", "set exactly if images.secret_access_key is set"),
        ("images.delivery", "redirect", "stream, unless images.url is a bucket"),
        ("images.delivery", "cdn", "images.delivery"),
        ("retention.grabs_days", "29", "0, or from 30 to 36500; got 29"),
        ("retention.images_days", "36501", "retention.images_days"),
        ("retention.test_grabs_days", "-1", "test_grabs_days"),
        ("retention.unverified_days", "36501", "retention.unverified_days"),
        ("retention.min_free_percent", "100", "retention.min_free_percent"),
        ("sites.open_per_team", "51", "sites.open_per_team"),
        ("sites.max_pages", "0", "sites.max_pages"),
        ("samples.sites", "example.com", "samples.sites"),
        ("samples.sites", "https://user:secret@example.com/", "samples.sites"),
        ("samples.sites", "https://a.example/,https://b.example/,ftp://c.example/", "samples.sites"),
        (
            "samples.sites",
            "https://a.example/,https://b.example/,https://c.example/,https://d.example/,https://e.example/,https://f.example/",
            "at most 5 URLs",
        ),
    ] {
        let problems = with(&[(key, value)]).unwrap_err();
        assert!(problems.contains(named), "{key}: {problems}");
    }
}

#[test]
fn all_problems_are_reported_together() {
    let problems = with(&[("limits.async_queue", "0"), ("browser.settle_ms", "0")]).unwrap_err();
    assert!(problems.contains("limits.async_queue") && problems.contains("browser.settle_ms"), "{problems}");
}

#[test]
fn keys_are_published_at_the_public_url_unless_another_is_set() {
    let agent = |settings: &[(&'static str, &str)]| {
        let agent = with(settings).unwrap().agent();
        agent.map(|agent| agent.as_str().to_owned())
    };
    let (signed, public) = (("browser.identity", "signed"), ("http.public_url", "https://grabs.example.com/"));
    let own = ("browser.identity_url", "https://bot.example.com");
    assert_eq!(agent(&[public, own]), None);
    assert_eq!(agent(&[public, signed]).as_deref(), Some("https://grabs.example.com"));
    assert_eq!(agent(&[public, signed, own]).as_deref(), Some("https://bot.example.com"));
    assert_eq!(agent(&[signed, own]).as_deref(), Some("https://bot.example.com"));
}

#[test]
fn oauth_urls_default_to_the_public_url() {
    let oauth = with(&[]).unwrap().oauth("https://grabs.example.com");
    assert_eq!(
        (oauth.issuer.as_str(), oauth.mcp_url.as_str()),
        ("https://grabs.example.com", "https://grabs.example.com/mcp")
    );
    assert_eq!((oauth.base_url.as_str(), oauth.refresh_reuse_grace_s), ("https://grabs.example.com/v1", 30));
    let set = [("oauth.auth_url", "https://auth.example.com/"), ("oauth.mcp_url", "http://localhost:8080/mcp/")];
    let oauth = with(&set).unwrap().oauth("https://grabs.example.com");
    assert_eq!(
        (oauth.issuer.as_str(), oauth.mcp_url.as_str()),
        ("https://auth.example.com", "http://localhost:8080/mcp")
    );
}

#[test]
fn passwords_are_not_shown() {
    let config = with(&[("database.url", "postgres://u:hunter2@h/n")]).unwrap();
    assert!(!format!("{config:?}").contains("hunter2"));
    let problems = with(&[("mail.smtp_url", "smtp://u:hunter2@mail.example.com")]).unwrap_err();
    assert!(!problems.contains("hunter2"), "{problems}");
    let mail = with(&[("mail.smtp_url", "smtps://u:hunter2@mail.example.com"), ("mail.from", "a@b.example")]).unwrap();
    assert!(!format!("{mail:?}").contains("hunter2"));
    assert_eq!(config.database_url(), "postgres://u:hunter2@h/n");
    let settings =
        [("billing.stripe_secret_key", "sk_test_hunter2"), ("billing.stripe_webhook_secret", "whsec_hunter2")];
    let config = with(&settings).unwrap();
    assert!(!format!("{config:?}").contains("hunter2"));
    assert!(config.billing.takes_test_payments());
    let images = [("images.access_key_id", "id"), ("images.secret_access_key", "hunter2")];
    assert!(!format!("{:?}", with(&images).unwrap()).contains("hunter2"));
    let problems = with(&[("images.url", "s3://id:hunter2@bucket")]).unwrap_err();
    assert!(problems.contains("images.url") && !problems.contains("hunter2"), "{problems}");
    let wrong = [("billing.stripe_secret_key", "sk_live_hunter2 "), ("billing.stripe_webhook_secret", "hunter2")];
    let problems = with(&wrong).unwrap_err();
    assert!(problems.contains("stripe_secret_key") && problems.contains("stripe_webhook_secret"), "{problems}");
    assert!(!problems.contains("hunter2"), "{problems}");
}

#[test]
fn two_webhook_secrets_are_accepted_during_rotation() {
    let billing = |secret| {
        let settings = [("billing.stripe_secret_key", "rk_live_x"), ("billing.stripe_webhook_secret", secret)];
        with(&settings).unwrap().billing
    };
    assert_eq!(billing("whsec_a").webhook_secrets(), ["whsec_a"]);
    assert_eq!(billing("whsec_a, whsec_b,").webhook_secrets(), ["whsec_a", "whsec_b"]);
    assert!(!billing("whsec_a").takes_test_payments());
}

#[test]
fn only_test_grabs_are_deleted_by_default() {
    let day = Duration::from_secs(24 * 60 * 60);
    let kept = |overlay: &[(&'static str, &str)]| with(overlay).unwrap().retention.settings();
    let defaults = kept(&[]);
    assert_eq!((defaults.images, defaults.grabs, defaults.test_grabs), (None, None, Some(day * 7)));
    let set =
        kept(&[("retention.images_days", "1"), ("retention.grabs_days", "30"), ("retention.test_grabs_days", "0")]);
    assert_eq!((set.images, set.grabs, set.test_grabs), (Some(day), Some(day * 30), None));
    assert_eq!(defaults.unverified, Some(day * 30));
    assert_eq!(kept(&[("retention.unverified_days", "0")]).unverified, None);
}

fn cluster_problems(overlay: &[(&'static str, &str)]) -> String {
    let overlay: BTreeMap<_, _> = overlay.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
    Config::with(&overlay).err().map(|problems| problems.to_string()).unwrap_or_default()
}

#[test]
fn cluster_needs_postgres_and_what_all_processes_share() {
    let postgres = ("database.url", "postgres://grabd@db/grabd");
    let key = ("secrets.key_file", "/etc/grabd/secrets.key");
    let images = ("images.url", "s3://images");
    assert_eq!(cluster_problems(&[("cluster.enabled", "true"), postgres, images, key]), "");
    assert!(cluster_problems(&[("cluster.enabled", "true"), images, key]).contains("PostgreSQL"));
    assert!(cluster_problems(&[("cluster.enabled", "true"), images, postgres]).contains("secrets.key_file"));
    assert!(cluster_problems(&[("cluster.enabled", "true"), postgres, key]).contains("images.url"));
    let edge = ("role", "edge");
    assert!(cluster_problems(&[edge, postgres, images, key]).contains("cluster.enabled"));
    let enabled = ("cluster.enabled", "true");
    assert!(cluster_problems(&[edge, enabled, postgres, images, key]).contains("http.public_url"));
    assert_eq!(
        cluster_problems(&[edge, enabled, postgres, images, key, ("http.public_url", "https://grabs.example")]),
        ""
    );
    assert!(cluster_problems(&[("role", "renderer")]).contains("renderer.cores"));
    assert_eq!(cluster_problems(&[("role", "renderer"), ("renderer.cores", "core:1,[::1]:2,10.0.0.1:3")]), "");
    assert!(cluster_problems(&[("role", "renderer"), ("renderer.cores", "https://core")]).contains("renderer.cores"));
    assert!(cluster_problems(&[("renderer.cores", "core:1")]).contains("renderer.cores"));
}

#[test]
fn plain_text_listener_for_renderers_is_on_loopback_only() {
    let base = [
        ("cluster.enabled", "true"),
        ("database.url", "postgres://grabd@db/grabd"),
        ("secrets.key_file", "/etc/grabd/secrets.key"),
        ("images.url", "s3://images"),
    ];
    let with = |more: &[(&'static str, &str)]| cluster_problems(&[&base, more].concat());
    let (ca, cert, key) = (("cluster.ca_file", "ca"), ("cluster.cert_file", "cert"), ("cluster.key_file", "key"));
    let everywhere = ("cluster.listen", "0.0.0.0:50052");
    assert_eq!(with(&[("cluster.listen", "127.0.0.1:50052")]), "");
    assert!(with(&[everywhere]).contains("loopback"));
    assert_eq!(with(&[everywhere, ca, cert, key]), "");
    assert!(with(&[everywhere, ca, cert]).contains("cert_file and key_file"));
    assert!(with(&[("role", "edge"), ("cluster.listen", "127.0.0.1:1")]).contains("cluster.listen"));
    assert!(with(&[("cluster.listen", "everywhere")]).contains("10.0.0.5:50052"));
}

#[test]
fn bus_is_for_clusters_and_its_password_is_not_shown() {
    let base = [
        ("database.url", "postgres://grabd@db/grabd"),
        ("secrets.key_file", "/etc/grabd/secrets.key"),
        ("images.url", "s3://images"),
        ("cluster.enabled", "true"),
    ];
    let with = |url| cluster_problems(&[&base[..], &[("bus.url", url)]].concat());
    for url in ["", "nats://10.0.0.5", "tls://me:hunter2@nats.internal:4222, nats://[::1]:4222"] {
        assert_eq!(with(url), "", "{url}");
    }
    for url in ["10.0.0.5:4222", "redis://10.0.0.5", "nats://me:hunter2@", "nats://a:1,", "nats://a/path"] {
        let problems = with(url);
        assert!(problems.contains("bus.url") && !problems.contains("hunter2"), "{url}: {problems}");
    }
    assert!(with(&vec!["nats://a:1"; 17].join(",")).contains("17 servers"));
    assert!(cluster_problems(&[("bus.url", "nats://a:1")]).contains("cluster.enabled"));
}
