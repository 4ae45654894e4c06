//! `/docs`: the documentation, rendered once from the Markdown files of the repository and from the file of settings.
//!
//! The content of the API reference comes from the REST API, which has the OpenAPI document.

mod client_packages;
mod example;
mod library;
mod markdown;
mod pages;
mod passage;
mod search;
mod settings;
mod show;

pub use client_packages::ClientPackages;
pub(crate) use library::Library;
pub use library::ReferencePage;
pub(crate) use show::{home, llms, package, search, show, show_reference};

/// The path of the first page. The others are below it.
pub(crate) const PATH: &str = "/docs";
/// The path of the search.
pub(crate) const SEARCH: &str = "/docs/search";
/// The path of one page. With the suffix `.md`, its Markdown.
pub(crate) const ONE: &str = "/docs/{page}";
/// The path of one page of the API reference. The first one is at `/docs/api`.
pub(crate) const ONE_OF_REFERENCE: &str = "/docs/api/{page}";
/// The directory of the packages of the client libraries.
const PACKAGES: &str = "/docs/packages";
/// The path of one package.
pub(crate) const PACKAGE: &str = "/docs/packages/{name}";
/// The list of all pages for language models, as described at llmstxt.org.
pub(crate) const LLMS: &str = "/llms.txt";
