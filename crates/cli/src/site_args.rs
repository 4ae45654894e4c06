//! The arguments of `grab site`.

use std::path::PathBuf;

use clap::{Subcommand, ValueHint};

use crate::format::Format;
use crate::options::OptionArgs;

/// A site to capture, or a command for site jobs.
#[derive(Clone, Debug, clap::Args)]
#[command(subcommand_negates_reqs = true)]
pub(crate) struct SiteArgs {
    #[command(flatten)]
    pub(crate) create: CreateSiteArgs,
    #[command(subcommand)]
    pub(crate) command: Option<SiteCommand>,
}

/// Commands for site jobs.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum SiteCommand {
    /// List site jobs, newest first
    List {
        /// Maximum number of jobs
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: u32,
    },
    /// Show one site job
    Show {
        /// Id of the job
        id: String,
    },
    /// List the pages of a job in the order in which they were found
    Pages {
        /// Id of the job
        id: String,
        /// Maximum number of pages
        #[arg(long, value_name = "N", default_value_t = 1000)]
        limit: u32,
    },
    /// Wait until a job has ended, and save its images and a contact sheet
    Save {
        /// Id of the job
        id: String,
        /// The directory [default: one named after the host of the site]
        #[arg(long, short, value_name = "DIRECTORY", value_hint = ValueHint::DirPath)]
        output: Option<PathBuf>,
    },
    /// Stop a job. Captures that have begun are finished
    Cancel {
        /// Id of the job
        id: String,
    },
    /// Delete a job and the list of its pages; its captures stay
    Delete {
        /// Id of the job
        id: String,
    },
}

/// A site to capture.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct CreateSiteArgs {
    /// The page at which to begin, whose links are followed, or a sitemap: an address that ends in .xml, .txt or .gz
    #[arg(value_name = "URL|SITEMAP", value_hint = ValueHint::Url, required = true)]
    pub(crate) address: Option<String>,
    /// The address is a sitemap, whatever its name is
    #[arg(long)]
    pub(crate) sitemap: bool,
    /// The largest number of pages to capture, each of which costs a credit, from 1 to 1000 [default: 50]
    #[arg(long, value_name = "N")]
    pub(crate) max_pages: Option<u32>,
    /// How many links away from the first page, from 0 to 10 [default: 3]
    #[arg(long, value_name = "N")]
    pub(crate) depth: Option<u32>,
    /// Capture only pages whose path and query have this pattern, such as '/docs/*'; * stands for any characters; can be
    /// repeated
    #[arg(long, value_name = "PATTERN")]
    pub(crate) include: Vec<String>,
    /// Leave out pages whose path and query have this pattern, also those of --include; can be repeated
    #[arg(long, value_name = "PATTERN")]
    pub(crate) exclude: Vec<String>,
    /// Capture pages that robots.txt excludes, too, if the operator of the service allows it
    #[arg(long)]
    pub(crate) ignore_robots: bool,
    /// How many pages to request in a minute, from 1 to 120 [default: 30]
    #[arg(long, value_name = "N")]
    pub(crate) requests_per_minute: Option<u32>,
    /// Name of the job [default: the host of the site]
    #[arg(long, value_name = "TEXT")]
    pub(crate) name: Option<String>,
    /// The directory for the images and the contact sheet, index.html [default: one named after the host of the site]
    #[arg(long, short, value_name = "DIRECTORY", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
    /// Print the job and return at once; `grab site save` waits for it later
    #[arg(long, conflicts_with = "output")]
    pub(crate) no_wait: bool,
    /// Format of the images [default: png]
    #[arg(long)]
    pub(crate) format: Option<Format>,
    #[command(flatten)]
    pub(crate) options: OptionArgs,
}
