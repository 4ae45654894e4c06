//! A job that captures a site, and its pages, as REST and webhooks show them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::words::{page_state_schema, site_state_schema};

/// A job that captures many pages of one site. Further members may appear.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Site<'a> {
    /// Id of the job. Ids sort by creation time.
    #[schema(format = "uuid")]
    pub id: Cow<'a, str>,
    /// Whether its grabs are live. Those of jobs of test keys are placeholders, which spend no credits and have no links to follow.
    pub live: bool,
    /// Its name, for people.
    #[schema(max_length = 100)]
    pub name: Cow<'a, str>,
    /// The start page, from which links are followed. Null with `sitemap`.
    pub url: Option<Cow<'a, str>>,
    /// The sitemap whose pages are captured. Null with `url`.
    pub sitemap: Option<Cow<'a, str>>,
    /// The capture options that differ from their defaults, without those whose values are never returned.
    #[schema(value_type = Object)]
    pub capture: Map<String, Value>,
    /// The most pages that are captured.
    #[schema(minimum = 1, maximum = 1000)]
    pub max_pages: u32,
    /// How many links lead from the start page to a captured page at most. Null with `sitemap`.
    #[schema(minimum = 0, maximum = 10)]
    pub max_depth: Option<u32>,
    /// Patterns of the addresses that are captured. Empty: all are.
    #[schema(max_items = 20)]
    pub include: Vec<Cow<'a, str>>,
    /// Patterns of the addresses that are not captured, even if they are included.
    #[schema(max_items = 20)]
    pub exclude: Vec<Cow<'a, str>>,
    /// Whether the robots.txt of the site is followed.
    pub robots: bool,
    /// How often the site is asked for a document or a page.
    #[schema(minimum = 1, maximum = 120)]
    pub requests_per_minute: u32,
    /// `discovering` while addresses may still be found, `capturing` when all are known, and then `done`, `canceled` by somebody,
    /// `failed` if nothing was captured, or `out_of_credits`.
    #[schema(schema_with = site_state_schema)]
    pub state: Cow<'a, str>,
    /// Time of creation.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Cow<'a, str>,
    /// Time of the last change of its state.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Cow<'a, str>,
    /// When the last of its captures ended, after which nothing changes any more. Null before.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub finished_at: Option<Cow<'a, str>>,
    /// Why it failed, that there are no credits, or why the next capture of an open job waits. Null otherwise.
    #[schema(inline)]
    pub error: Option<SiteError<'a>>,
    /// How many of its pages are in which state.
    #[schema(inline)]
    pub pages: SitePages,
}

/// Why a job or a page failed, why an open job waits, or what is to be said of a page that was captured.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SiteError<'a> {
    /// A code of the errors of this API, `no_pages` or `other_site`.
    pub code: Cow<'a, str>,
    /// What happened, for people.
    #[schema(max_length = 200)]
    pub message: Cow<'a, str>,
}

/// How many pages of a job are in which state.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct SitePages {
    /// All listed pages. Of the addresses that are not captured, at most 500 are listed.
    pub found: u32,
    /// Those that are not captured.
    pub skipped: u32,
    /// Those that were captured.
    pub captured: u32,
    /// Those whose capture failed.
    pub failed: u32,
    /// Those that wait for their capture, or are being captured.
    pub waiting: u32,
}

/// A page of a job.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SitePage<'a> {
    /// Its number within the job, from 1, in the order of discovery.
    #[schema(minimum = 1)]
    pub number: u32,
    /// Its address, without a fragment.
    pub url: Cow<'a, str>,
    /// How many links lead to it from the start page. 0 for the start page, and for pages of a sitemap.
    #[schema(minimum = 0, maximum = 10)]
    pub depth: u32,
    /// Address of the page or the sitemap on which it was found. Null for the start page.
    pub found_on: Option<Cow<'a, str>>,
    /// `waiting`, `capturing`, `done`, `failed`, or `skipped`: it is not captured.
    #[schema(schema_with = page_state_schema)]
    pub state: Cow<'a, str>,
    /// Why it is not captured: `robots`, `other_site`, `excluded`, `not_html`, `max_pages`, `private_address`, `canceled` or
    /// `out_of_credits`. Null unless it is skipped.
    pub skipped_because: Option<Cow<'a, str>>,
    /// Id of its grab. Null before there is one.
    #[schema(format = "uuid")]
    pub grab_id: Option<Cow<'a, str>>,
    /// URL of its image. Null before it is captured, and after the image was deleted.
    pub image_url: Option<Cow<'a, str>>,
    /// Why its capture failed. If it is `done`: that it has led to another site (`other_site`), or why its links are not followed.
    /// Null otherwise.
    #[schema(inline)]
    pub error: Option<SiteError<'a>>,
}

/// The jobs of the key's team and environment, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SiteList<'a> {
    /// The jobs.
    pub data: Vec<Site<'a>>,
    /// Whether there are older ones.
    pub has_more: bool,
}

/// The pages of a job, in the order of discovery.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SitePageList<'a> {
    /// The pages.
    pub data: Vec<SitePage<'a>>,
    /// Whether there are further ones.
    pub has_more: bool,
}

/// What a message about a job has.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SiteEvent<'a> {
    /// The job, which has ended.
    pub site: Site<'a>,
}
