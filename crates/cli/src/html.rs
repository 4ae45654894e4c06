//! Web pages that are written into files: reports and contact sheets.

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:80rem;padding:0 1rem;color:#1a1d21;\
    background:#fff}h1{font-size:1.5rem}h2{font-size:1rem;margin:2rem 0 .5rem;overflow-wrap:anywhere}\
    .tag{border-radius:4px;padding:.1rem .5rem;margin-right:.5rem;font-size:.875rem;background:#e7e9ec}\
    .changed{background:#b3261e;color:#fff}.failed,.new{background:#6b4f00;color:#fff}\
    .images{display:grid;grid-template-columns:repeat(auto-fit,minmax(16rem,1fr));gap:1rem}figure{margin:0}\
    figcaption{font-size:.875rem}img{max-width:100%;height:auto;border:1px solid #c7cbd1}a{color:inherit}\
    .sheet img{width:100%;aspect-ratio:16/10;object-fit:cover;object-position:top}.sheet figcaption{overflow-wrap:anywhere}\
    @media(prefers-color-scheme:dark){body{color:#e8eaed;background:#16181b}.tag{background:#33373d}}";

/// A page. The title and the body are HTML.
pub(crate) fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n<style>{STYLE}</style>\n\
         <h1>{title}</h1>\n{body}</html>\n"
    )
}

/// A text as HTML, also in an attribute.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_pages_are_escaped() {
        assert_eq!(escaped("https://a.example/?a=1&b=<\"x\">"), "https://a.example/?a=1&amp;b=&lt;&quot;x&quot;&gt;");
    }
}
