//! The request that creates a job.

use serde_json::{Map, Value, json};

use crate::capture::complete_url;
use crate::failure::Failure;
use crate::site_args::CreateSiteArgs;
use crate::values::members;

/// The ends of paths that are sitemaps.
const SITEMAP_EXTENSIONS: [&str; 3] = [".xml", ".txt", ".gz"];

/// The request body. Members that are not set are left out, so that the service's defaults apply.
pub(super) fn body(args: &CreateSiteArgs) -> Result<Value, Failure> {
    let CreateSiteArgs { max_pages, depth, include, exclude, requests_per_minute, name, .. } = args;
    let address = complete_url(args.address.clone().unwrap_or_default())?;
    let is_sitemap = args.sitemap || is_sitemap(&address);
    let mut capture = Map::new();
    capture.extend(args.format.map(|format| ("format".to_owned(), json!(format.as_str()))));
    capture.extend(args.options.0.iter().map(|(name, value)| ((*name).to_owned(), json!(value))));
    Ok(members([
        (if is_sitemap { "sitemap" } else { "url" }, Some(json!(address))),
        ("capture", Some(Value::Object(capture))),
        ("max_pages", max_pages.map(|number| json!(number))),
        ("max_depth", depth.map(|number| json!(number))),
        ("include", (!include.is_empty()).then(|| json!(include))),
        ("exclude", (!exclude.is_empty()).then(|| json!(exclude))),
        ("robots", args.ignore_robots.then(|| json!(false))),
        ("requests_per_minute", requests_per_minute.map(|number| json!(number))),
        ("name", name.as_ref().map(|name| json!(name))),
    ]))
}

/// Whether the path of an address ends as those of sitemaps do.
fn is_sitemap(address: &str) -> bool {
    let path = url::Url::parse(address).map(|url| url.path().to_ascii_lowercase()).unwrap_or_default();
    SITEMAP_EXTENSIONS.iter().any(|extension| path.ends_with(extension))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Args, Command};

    fn parse(args: &[&str]) -> Value {
        let args = Args::try_parse_from([&["grab", "site"], args].concat()).unwrap();
        match args.command {
            Some(Command::Site(args)) => body(&args.create).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_what_is_set_is_sent() {
        assert_eq!(parse(&["a.example"]), json!({ "url": "https://a.example", "capture": {} }));
        let args =
            ["https://a.example/docs", "--max-pages", "20", "--depth", "1", "--include", "/docs/*", "--full-page"];
        let more = ["--exclude", "*?print=*", "--exclude", "/old/*", "--format", "webp", "--requests-per-minute", "60"];
        let expected = json!({
            "url": "https://a.example/docs",
            "capture": { "format": "webp", "full_page": true },
            "max_pages": 20,
            "max_depth": 1,
            "include": ["/docs/*"],
            "exclude": ["*?print=*", "/old/*"],
            "requests_per_minute": 60,
        });
        assert_eq!(parse(&[&args[..], &more].concat()), expected);
        assert_eq!(parse(&["a.example", "--ignore-robots"])["robots"], false);
    }

    #[test]
    fn sitemap_is_recognised_by_its_name_or_named_by_a_flag() {
        for (args, member) in [
            (&["a.example/sitemap.xml"] as &[&str], "sitemap"),
            (&["https://a.example/Sitemap.XML.gz?of=2"], "sitemap"),
            (&["https://a.example/pages.txt"], "sitemap"),
            (&["https://a.example/sitemap", "--sitemap"], "sitemap"),
            (&["https://a.example/sitemap.html"], "url"),
            (&["https://a.example/?page=a.xml"], "url"),
        ] {
            assert!(parse(args)[member].is_string(), "{args:?}");
        }
    }

    #[test]
    fn site_or_command_is_required() {
        let parse = |args: &[&str]| Args::try_parse_from([&["grab", "site"], args].concat());
        for args in [&[] as &[&str], &["a.example", "--no-wait", "-o", "shots"], &["show"]] {
            assert!(parse(args).is_err(), "{args:?}");
        }
        for args in [&["list"] as &[&str], &["show", "a"], &["save", "a", "-o", "shots"]] {
            assert!(parse(args).is_ok(), "{args:?}");
        }
    }
}
