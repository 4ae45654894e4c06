//! What a page says about itself: between a renderer and the core, and in the public message.

use grabd_domain::grabs::{OpenGraph, PageInfo};
use grabd_proto::{internal, v1};

use crate::numbers::to_i32;

/// As a message of a renderer. `None` if the page said nothing.
pub(crate) fn to_wire(page: &PageInfo) -> Option<internal::v1::PageInfo> {
    let PageInfo { title, description, lang, canonical_url, icon_url, open_graph, page_width, page_height, words } =
        page.clone();
    let message = internal::v1::PageInfo {
        title,
        description,
        lang,
        canonical_url,
        icon_url,
        open_graph: open_graph.map(to_open_graph),
        page_width: page_width.map(to_i32),
        page_height: page_height.map(to_i32),
        words: words.map(to_i32),
    };
    (*page != PageInfo::default()).then_some(message)
}

/// From a message of a renderer. The renderer limits texts as well, but pages run in its process.
pub(crate) fn from_wire(message: internal::v1::PageInfo) -> PageInfo {
    let internal::v1::PageInfo {
        title,
        description,
        lang,
        canonical_url,
        icon_url,
        open_graph,
        page_width,
        page_height,
        words,
    } = message;
    let open_graph = open_graph.map(from_open_graph);
    let [page_width, page_height, words] = [page_width, page_height, words].map(from_i32);
    let page =
        PageInfo { title, description, lang, canonical_url, icon_url, open_graph, page_width, page_height, words };
    page.bounded()
}

/// Sets the members of a grab.
pub(crate) fn add_to(wire: &mut v1::Grab, page: &PageInfo) {
    let PageInfo { title, description, lang, canonical_url, icon_url, open_graph, page_width, page_height, words } =
        page.clone();
    wire.title = title;
    wire.description = description;
    wire.lang = lang;
    wire.canonical_url = canonical_url;
    wire.icon_url = icon_url;
    wire.open_graph = open_graph.map(to_open_graph);
    wire.page_width = page_width.map(to_i32);
    wire.page_height = page_height.map(to_i32);
    wire.words = words.map(to_i32);
}

fn to_open_graph(properties: OpenGraph) -> v1::OpenGraph {
    let OpenGraph { title, description, image, site_name, kind } = properties;
    v1::OpenGraph { title, description, image, site_name, r#type: kind }
}

fn from_open_graph(properties: v1::OpenGraph) -> OpenGraph {
    let v1::OpenGraph { title, description, image, site_name, r#type } = properties;
    OpenGraph { title, description, image, site_name, kind: r#type }
}

fn from_i32(number: Option<i32>) -> Option<u32> {
    u32::try_from(number?).ok()
}
