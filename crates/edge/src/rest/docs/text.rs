//! Text as HTML: escaping, and the subset of Markdown that the descriptions use.

/// Escapes plain text.
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

/// Inline text with `code`, **strong** and *emphasised* parts.
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
    // An unpaired mark is literal text.
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

/// Paragraphs and lists. Headings are rendered by `heading`.
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

/// The anchor of a title.
pub(super) fn slug(title: &str) -> String {
    let words = title.split(|character: char| !character.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_special_characters_are_escaped() {
        assert_eq!(escape("<a b=\"c\" d='e'>&"), "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;");
        assert_eq!(inline("`<b>` <i>"), "<code>&lt;b&gt;</code> &lt;i&gt;");
    }

    #[test]
    fn markdown_subset_is_rendered() {
        assert_eq!(
            inline("a **b** *c* `**d**` 2*3"),
            "a <strong>b</strong> *c* <code>**d**</code> 2*3".replace("*c* ", "<em>c</em> ")
        );
        let html = blocks("## One two\n\nText.\n\n- a\n- `b`", |title| format!("<h2>{title}</h2>"));
        assert_eq!(html, "<h2>One two</h2><p>Text.</p>\n<ul><li>a</li><li><code>b</code></li></ul>\n");
        assert_eq!(slug("Verifying, or not"), "verifying-or-not");
    }
}
