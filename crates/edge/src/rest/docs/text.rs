//! Text as HTML: escaped, and with the little Markdown that the description uses.

/// Plain text.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            character => escaped.push(character),
        }
    }
    escaped
}

/// A run of text with `code`, **strong** and *emphasised* parts.
pub(super) fn inline(text: &str) -> String {
    let parts = text.split('`').enumerate();
    parts
        .map(|(number, part)| match number % 2 {
            0 => paired(&paired(&escape(part), "**", "strong"), "*", "em"),
            _ => format!("<code>{}</code>", escape(part)),
        })
        .collect()
}

fn paired(text: &str, mark: &str, element: &str) -> String {
    let parts: Vec<&str> = text.split(mark).collect();
    // A mark without its partner is only a character.
    if parts.len().is_multiple_of(2) {
        return text.to_owned();
    }
    let parts = parts.iter().enumerate();
    parts
        .map(|(number, part)| match number % 2 {
            0 => (*part).to_owned(),
            _ => format!("<{element}>{part}</{element}>"),
        })
        .collect()
}

/// Paragraphs and lists. Headings are given as they come to `heading`.
pub(super) fn blocks(text: &str, heading: impl Fn(&str) -> String) -> String {
    let mut html = String::new();
    for block in text.split("\n\n").map(str::trim).filter(|block| !block.is_empty()) {
        if let Some(title) = block.strip_prefix("## ") {
            html.push_str(&heading(title));
        } else if block.starts_with("- ") {
            let items = block.lines().map(|line| format!("<li>{}</li>", inline(line.trim_start_matches("- "))));
            html.push_str(&format!("<ul>{}</ul>\n", items.collect::<String>()));
        } else {
            html.push_str(&format!("<p>{}</p>\n", inline(block)));
        }
    }
    html
}

/// A title as an anchor.
pub(super) fn slug(title: &str) -> String {
    let words = title.split(|character: char| !character.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_break_out() {
        assert_eq!(escape("<a b=\"c\" d='e'>&"), "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;");
        assert_eq!(inline("`<b>` <i>"), "<code>&lt;b&gt;</code> &lt;i&gt;");
    }

    #[test]
    fn the_little_markdown_is_understood() {
        assert_eq!(
            inline("a **b** *c* `**d**` 2*3"),
            "a <strong>b</strong> *c* <code>**d**</code> 2*3".replace("*c* ", "<em>c</em> ")
        );
        let html = blocks("## One two\n\nText.\n\n- a\n- `b`", |title| format!("<h2>{title}</h2>"));
        assert_eq!(html, "<h2>One two</h2><p>Text.</p>\n<ul><li>a</li><li><code>b</code></li></ul>\n");
        assert_eq!(slug("Waiting, or not"), "waiting-or-not");
    }
}
