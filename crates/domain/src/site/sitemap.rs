//! Reads sitemaps: the XML of <https://www.sitemaps.org/protocol.html>, an index of them, and lists of addresses as text.
//!
//! Entities other than the predefined ones are not expanded, and documents that declare their own are refused. Nothing is loaded.

/// The largest sitemap, in bytes, after it is decompressed.
pub const SITEMAP_BYTES: usize = 5 << 20;
/// The most addresses that are read of one sitemap.
pub const MAX_ENTRIES: usize = 50_000;
/// The longest reference to a character, in bytes, with its end.
const REFERENCE_BYTES: usize = 10;
/// How deep elements are nested at most.
const MAX_NESTED: usize = 16;

/// The addresses of a sitemap, as they are written in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sitemap {
    /// Those of pages.
    Pages(Vec<String>),
    /// Those of other sitemaps.
    Index(Vec<String>),
}

/// Why a document is not a sitemap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SitemapError {
    /// It is something else.
    #[error("it is neither a sitemap in XML nor a list of addresses with one in each line")]
    Other,
    /// It has a document type, in which entities may be declared.
    #[error("it has a document type declaration, which a sitemap must not have")]
    DocumentType,
    /// It is not well-formed.
    #[error("its XML is not well-formed")]
    Malformed,
}

impl Sitemap {
    /// Reads a document.
    ///
    /// # Errors
    /// See [`SitemapError`].
    pub fn parse(document: &[u8]) -> Result<Self, SitemapError> {
        let text = String::from_utf8_lossy(document);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text).trim_start();
        if text.starts_with('<') { parse_xml(text) } else { parse_list(text).map(Self::Pages) }
    }
}

/// A list with one address in each line.
fn parse_list(text: &str) -> Result<Vec<String>, SitemapError> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let addresses: Vec<String> = lines.filter(|line| is_address(line)).take(MAX_ENTRIES).map(str::to_owned).collect();
    if addresses.is_empty() { Err(SitemapError::Other) } else { Ok(addresses) }
}

fn is_address(line: &str) -> bool {
    ["http://", "https://"]
        .iter()
        .any(|scheme| line.get(..scheme.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(scheme)))
}

/// What is known of the part of the document before a place.
#[derive(Default)]
struct Reader<'a> {
    /// The local names of the open elements.
    open: Vec<&'a str>,
    is_index: bool,
    has_root: bool,
    /// The text of the address that is being read.
    address: Option<String>,
    addresses: Vec<String>,
}

fn parse_xml(mut text: &str) -> Result<Sitemap, SitemapError> {
    let mut reader = Reader::default();
    while let Some(at) = text.find('<') {
        reader.add_text(&text[..at]);
        let markup = &text[at..];
        text = if let Some(rest) = markup.strip_prefix("<!--") {
            after(rest, "-->")?
        } else if let Some(rest) = markup.strip_prefix("<![CDATA[") {
            let end = rest.find("]]>").ok_or(SitemapError::Malformed)?;
            reader.add_literal(&rest[..end]);
            &rest[end + "]]>".len()..]
        } else if let Some(rest) = markup.strip_prefix("<?") {
            after(rest, "?>")?
        } else if markup.starts_with("<!") {
            return Err(SitemapError::DocumentType);
        } else {
            let (tag, rest) = split_tag(&markup[1..])?;
            reader.read_tag(tag)?;
            rest
        };
        if reader.addresses.len() == MAX_ENTRIES {
            break;
        }
    }
    match (reader.has_root, reader.is_index) {
        (false, _) => Err(SitemapError::Other),
        (true, true) => Ok(Sitemap::Index(reader.addresses)),
        (true, false) => Ok(Sitemap::Pages(reader.addresses)),
    }
}

fn after<'a>(text: &'a str, end: &str) -> Result<&'a str, SitemapError> {
    text.split_once(end).map(|(_, rest)| rest).ok_or(SitemapError::Malformed)
}

/// Splits behind a tag, whose attributes may contain `>`.
fn split_tag(text: &str) -> Result<(&str, &str), SitemapError> {
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return Ok((&text[..at], &text[at + 1..])),
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            (_, _) => {}
        }
    }
    Err(SitemapError::Malformed)
}

impl<'a> Reader<'a> {
    fn read_tag(&mut self, tag: &'a str) -> Result<(), SitemapError> {
        if let Some(name) = tag.strip_prefix('/') {
            return self.close(local_name(name));
        }
        let (content, is_empty) = match tag.strip_suffix('/') {
            Some(content) => (content, true),
            None => (tag, false),
        };
        let name = local_name(content);
        if self.open.is_empty() {
            match name {
                "urlset" => self.is_index = false,
                "sitemapindex" => self.is_index = true,
                _ => return Err(SitemapError::Other),
            }
            // A second root.
            if self.has_root {
                return Err(SitemapError::Malformed);
            }
            self.has_root = true;
        }
        if self.open.len() == MAX_NESTED {
            return Err(SitemapError::Malformed);
        }
        if is_empty {
            return Ok(());
        }
        let entry = if self.is_index { "sitemap" } else { "url" };
        // Addresses of images, which are deeper, are not those of pages.
        if name == "loc" && self.open.len() == 2 && self.open.last() == Some(&entry) {
            self.address = Some(String::new());
        }
        self.open.push(name);
        Ok(())
    }

    fn close(&mut self, name: &str) -> Result<(), SitemapError> {
        if self.open.pop() != Some(name) {
            return Err(SitemapError::Malformed);
        }
        if name == "loc"
            && let Some(address) = self.address.take()
        {
            let address = address.trim();
            if !address.is_empty() {
                self.addresses.push(address.to_owned());
            }
        }
        Ok(())
    }

    fn add_text(&mut self, text: &str) {
        if let Some(address) = &mut self.address {
            push_decoded(address, text);
        }
    }

    fn add_literal(&mut self, text: &str) {
        if let Some(address) = &mut self.address {
            address.push_str(text);
        }
    }
}

/// The name of an element without its prefix and attributes.
fn local_name(tag: &str) -> &str {
    let name = tag.split(char::is_whitespace).next().unwrap_or_default();
    name.rsplit_once(':').map_or(name, |(_, local)| local)
}

/// Adds a text with its references to characters. References to entities that are not predefined stay as they are.
fn push_decoded(result: &mut String, mut text: &str) {
    while let Some((before, reference)) = text.split_once('&') {
        result.push_str(before);
        let end = reference.bytes().take(REFERENCE_BYTES).position(|byte| byte == b';');
        let decoded = end.and_then(|end| Some((character(&reference[..end])?, &reference[end + 1..])));
        match decoded {
            Some((character, rest)) => {
                result.push(character);
                text = rest;
            }
            None => {
                result.push('&');
                text = reference;
            }
        }
    }
    result.push_str(text);
}

fn character(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(addresses: &[&str]) -> Result<Sitemap, SitemapError> {
        Ok(Sitemap::Pages(addresses.iter().map(|&address| address.to_owned()).collect()))
    }

    #[test]
    fn addresses_of_pages_are_read() {
        let sitemap = r#"<?xml version="1.0" encoding="UTF-8"?>
            <!-- made by > a tool <url> -->
            <urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="a>b">
              <url><loc> https://example.com/?a=1&amp;b=&#x32;&#33; </loc><lastmod>2026-01-01</lastmod></url>
              <url>
                <loc><![CDATA[https://example.com/c&d]]></loc>
                <image:image><image:loc>https://example.com/a.png</image:loc></image:image>
                <xhtml:link rel="alternate" href="https://example.com/de"/>
              </url>
              <url><loc></loc></url>
            </urlset>"#;
        let expected = pages(&["https://example.com/?a=1&b=2!", "https://example.com/c&d"]);
        assert_eq!(Sitemap::parse(sitemap.as_bytes()), expected);
        let prefixed = "<s:urlset><s:url><s:loc>https://example.com/</s:loc></s:url></s:urlset>";
        assert_eq!(Sitemap::parse(prefixed.as_bytes()), pages(&["https://example.com/"]));
        assert_eq!(Sitemap::parse(b"<urlset/>"), pages(&[]));
    }

    #[test]
    fn addresses_of_an_index_are_those_of_sitemaps() {
        let index = "<sitemapindex><sitemap><loc>https://example.com/a.xml.gz</loc></sitemap>\
                     <url><loc>https://example.com/no</loc></url></sitemapindex>";
        let expected = Sitemap::Index(vec!["https://example.com/a.xml.gz".to_owned()]);
        assert_eq!(Sitemap::parse(index.as_bytes()), Ok(expected));
    }

    #[test]
    fn list_has_an_address_in_each_line() {
        let list = "\u{feff}https://example.com/a\r\n\r\n  HTTP://example.com/b \n# no\nftp://example.com/\n";
        assert_eq!(Sitemap::parse(list.as_bytes()), pages(&["https://example.com/a", "HTTP://example.com/b"]));
        for text in ["", "\n\n", "Not found", "\u{0}\u{1}"] {
            assert_eq!(Sitemap::parse(text.as_bytes()), Err(SitemapError::Other), "{text:?}");
        }
    }

    #[test]
    fn hostile_documents_are_refused() {
        let bomb = r#"<?xml version="1.0"?><!DOCTYPE urlset [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>
            <urlset><url><loc>https://example.com/&b;</loc></url></urlset>"#;
        assert_eq!(Sitemap::parse(bomb.as_bytes()), Err(SitemapError::DocumentType));
        let deep = format!("<urlset>{}", "<a>".repeat(100_000));
        assert_eq!(Sitemap::parse(deep.as_bytes()), Err(SitemapError::Malformed));
        for (document, error) in [
            ("<html><body>", SitemapError::Other),
            ("<!doctype html><html>", SitemapError::DocumentType),
            ("<urlset><url></loc></urlset>", SitemapError::Malformed),
            ("<urlset><url", SitemapError::Malformed),
            ("<urlset><!-- ", SitemapError::Malformed),
            ("<urlset></urlset><urlset></urlset>", SitemapError::Malformed),
            ("<?xml ?>", SitemapError::Other),
        ] {
            assert_eq!(Sitemap::parse(document.as_bytes()), Err(error), "{document}");
        }
    }

    #[test]
    fn unknown_references_are_not_expanded() {
        let sitemap = "<urlset><url><loc>https://example.com/&xxe;&#xD800;&a&amp</loc></url></urlset>";
        assert_eq!(Sitemap::parse(sitemap.as_bytes()), pages(&["https://example.com/&xxe;&#xD800;&a&amp"]));
    }

    #[test]
    fn addresses_beyond_the_limit_are_left_out() {
        let entries = "<url><loc>https://example.com/</loc></url>".repeat(MAX_ENTRIES + 1);
        let read = Sitemap::parse(format!("<urlset>{entries}</urlset>").as_bytes());
        assert!(matches!(read, Ok(Sitemap::Pages(pages)) if pages.len() == MAX_ENTRIES));
    }
}
