//! Schema of the request body.

use serde_json::json;
use utoipa::openapi::schema::AllOfBuilder;
use utoipa::openapi::{ArrayBuilder, Object, ObjectBuilder, Ref, SchemaFormat, Type};

use super::super::openapi::parts::{integer, text};

/// A job to create.
pub(in super::super) fn create_site() -> Object {
    let url = address().description(Some(
        "The start page, an absolute http(s) URL. Links to pages of the same registrable domain are followed. It excludes `sitemap`.",
    ));
    let sitemap = address().description(Some(
        "The absolute http(s) URL of a sitemap, of an index of sitemaps, or of a text with one address in each line, as it is or \
         compressed with gzip.",
    ));
    let capture = AllOfBuilder::new().item(Ref::from_schema_name("CreateGrabRequest")).description(Some(
        "The capture options. `url`, `html`, `compare_to`, `max_age` and `upload_url` are refused, and with the start page `mask`, too.",
    ));
    let pages = integer(1, 1000)
        .default(Some(json!(50)))
        .description(Some("The most pages that are captured. The operator may have set a smaller limit."));
    let depth = integer(0, 10).default(Some(json!(3))).description(Some(
        "How many links lead from the start page to a captured page at most. 0: only that page is captured. Not with `sitemap`.",
    ));
    let robots = ObjectBuilder::new().schema_type(Type::Boolean).default(Some(json!(true))).description(Some(
        "Whether the robots.txt of the site is followed. `false` is refused unless the operator allows it.",
    ));
    let pace = integer(1, 120).default(Some(json!(30))).description(Some(
        "How often the site is asked for a document or a page. A longer `Crawl-delay` of its robots.txt is followed.",
    ));
    let name =
        text().min_length(Some(1)).max_length(Some(100)).description(Some("A name, for people. Default: the host."));
    ObjectBuilder::new()
        .description(Some("The job to create. It needs either `url` or `sitemap`. Unknown members are refused."))
        .property("url", url)
        .property("sitemap", sitemap)
        .property("capture", capture)
        .property("max_pages", pages)
        .property("max_depth", depth)
        .property("include", patterns("Patterns of the addresses that are captured. Default: all are."))
        .property("exclude", patterns("Patterns of the addresses that are not captured, even if they are included."))
        .property("robots", robots)
        .property("requests_per_minute", pace)
        .property("name", name)
        .build()
}

fn address() -> ObjectBuilder {
    text()
        .format(Some(SchemaFormat::Custom("uri".to_owned())))
        .min_length(Some(1))
        .max_length(Some(2048))
        .pattern(Some("^[hH][tT][tT][pP][sS]?://"))
}

fn patterns(about: &str) -> ArrayBuilder {
    let pattern = text().min_length(Some(1)).max_length(Some(200)).pattern(Some("^[/*]")).description(Some(
        "It is matched against the path and the query of an address. `*` stands for any run of characters.",
    ));
    ArrayBuilder::new().items(pattern).max_items(Some(20)).description(Some(about))
}
