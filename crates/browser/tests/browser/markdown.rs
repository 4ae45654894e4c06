//! What the Markdown of an article has: notes, callouts, code, pictures, formulas, lists, tables and frames.

use grabd_domain::capture::FileKind;

use crate::rig::{Rig, request};
use crate::site::{Site, html};

/// What each article begins with, so that it is one.
const LEAD: &str = "The first paragraph says what the article is about, and the second one says more. It is long enough \
                    to be found, so that what follows is a part of it.";

/// The Markdown of an article with `content`, without what it begins with. `{site}` is the address of the site.
async fn check(content: &str, expected: &str) {
    let page = format!("<!doctype html><title>Title</title><article><h1>Title</h1><p>{LEAD}</p>{content}</article>");
    let site = Site::start(2, [("/", html(page))]).await;
    let rig = Rig::start().await;
    let file = rig.text_file(request(&site.url("/")), FileKind::Markdown).await;
    let expected = expected.replace("{site}", site.url("/").trim_end_matches('/'));
    assert_eq!(file, format!("{LEAD}\n\n{expected}\n"));
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn linked_footnotes_are_written_at_the_end() {
    let content = r##"<p>Linked<sup id=r1><a href="#fn1">1</a></sup> and again<sup id=r2><a href="#fn2">[2]</a></sup>, area 5 m<sup>2</sup>, 10<sup>-6</sup> of it.</p>
<section class=footnotes><h2>Footnotes</h2><ol><li id=fn1><p>One, see <a href="https://example.com/one">there</a>. <a href="#r1">↩</a></p>
<li id=fn2><p>Two.</p><p>More of two. <a href="#r2">↩</a></p></ol></section>"##;
    let expected = "Linked[^1] and again[^2], area 5 m2, 10^-6 of it.

[^1]: One, see [there](https://example.com/one).

[^2]: Two.

    More of two.";
    check(content, expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn notes_beside_the_text_and_hidden_ones_are_footnotes() {
    let content = r##"<p>Beside the text.<label class=margin-toggle for=s1></label><input type=checkbox id=s1><span class=sidenote>A note in the margin.</span>
Hidden.<a href="#" data-definition=n2>*</a></p><aside id=n2 style="display:none">A note that is shown when it is asked for.</aside>"##;
    let expected = "Beside the text.[^1] Hidden.[^2]

[^1]: A note in the margin.

[^2]: A note that is shown when it is asked for.";
    check(content, expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_without_links_are_footnotes_if_there_are_notes() {
    let content = r##"<p>A claim.<sup>1</sup> See chapter <a href="#chapter">2</a>.</p><h2 id=chapter>Chapter 2</h2><p>Its text ends here.</p>
<hr><p><sup>1</sup> Its source.</p>"##;
    let expected = "A claim.[^1] See chapter [2](#chapter).

## Chapter 2

Its text ends here.

[^1]: Its source.";
    check(content, expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn callouts_are_quotations_with_their_kind() {
    let content = r#"<div class="markdown-alert markdown-alert-note"><p class=markdown-alert-title><svg></svg>Note</p><p>Of <b>GitHub</b>.</p></div>
<div class="alert alert-warning" role=alert><p>Without a title.</p></div>
<div data-callout=faq data-callout-fold="-" class="callout is-collapsed"><div class=callout-title><div class=callout-icon></div>
<div class=callout-title-inner>Is it folded?</div></div><div class=callout-content style="display:none"><p>It is.</p></div></div>
<div class="admonition tip"><p class=admonition-title>Try it</p><ul><li>one<li>two</ul></div>
<aside class="callout callout-danger"><p>Hot.</p></aside>
<blockquote><p>Said.</p><footer>— <a href="https://example.com/who">Who</a></footer></blockquote>"#;
    let expected = "> [!note] Note
> Of **GitHub**.

> [!warning] Warning
> Without a title.

> [!faq]- Is it folded?
> It is.

> [!tip] Try it
> - one
> - two

> [!danger] Danger
> Hot.

> Said.
>
> — [Who](https://example.com/who)";
    check(content, expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn code_has_its_language_and_neither_line_numbers_nor_buttons() {
    let content = r#"<figure class="highlight cpp"><table><tr><td class=gutter><pre>1
2
</pre><td class=code><pre>int x;
int y;
</pre></table></figure>
<div class=code-block><div class=code-header><span>Python</span><button>Copy code</button></div><pre><code>print(1)</code></pre></div>
<pre class=shiki><code data-language=ts><span style="display:block"><span style="user-select:none">1</span>let a</span><span
 style="display:block"><span style="user-select:none">2</span>let b</span></code></pre>
<pre><code class="hljs language-bash"><button>Copy</button>ls -l</code></pre>"#;
    let expected = "```cpp
int x;
int y;
```

```python
print(1)
```

```ts
let a
let b
```

```bash
ls -l
```";
    check(content, expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn late_and_large_pictures_and_frames_are_written() {
    let content = r#"<figure><img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=" data-src="/late.jpg" alt=Late><figcaption>Below it</figcaption></figure>
<p><img srcset="/s.png 400w, /l,1.png 800w" src="/s.png" alt=Large></p>
<picture><source srcset="/p-1.webp 1x, /p-2.webp 2x"><img src="/p.jpg" alt=Chosen></picture>
<div><noscript><img src="/none.png" alt="No script"></noscript></div><img src="/count.gif" width=1 height=1>
<iframe title="A talk" width=560 height=315 data-src="https://www.youtube.com/embed/b_PXuEPxN50"></iframe>
<iframe srcdoc="<p>Within <a href='https://example.com/in'>a frame</a>.</p>" width=300 height=100></iframe>"#;
    let expected = "![Late]({site}/late.jpg)

Below it

![Large]({site}/l,1.png)

![Chosen]({site}/p-2.webp)

![No script]({site}/none.png)

[A talk](https://www.youtube.com/watch?v=b_PXuEPxN50)

Within [a frame](https://example.com/in).";
    check(content, expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_are_not_read_as_formulas_lists_or_headings() {
    let content = r#"<p>Variables $a$b and $HOME/$USER, also ($<b>x</b>$).</p><p>From $5 to $6, or $7-$8, and 9$.</p><p>Half of \(x_1\) is 5$.</p>
<p>1. is no item</p><p>2) neither, nor 3.</p><p>Above<br>--<br>==<br>a | b<br>:-|-:<br>end</p><ul><li>4. within<li>$$ or so</ul>
<p><code>$a$</code> is code.</p>"#;
    let expected = r"Variables \$a\$b and \$HOME/\$USER, also (\$**x**\$).

From $5 to $6, or $7-\$8, and 9\$.

Half of $x_1$ is 5$.

1\. is no item

2\) neither, nor 3.

Above  
\--  
\==  
a | b  
\:-|-:  
end

- 4\. within
- \$\$ or so

`$a$` is code.";
    check(content, expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn formulas_are_written_as_tex() {
    let content = r#"<p>Without a source, <math><mfrac><mi>a</mi><msup><mi>b</mi><mn>2</mn></msup></mfrac></math> and <span class=katex><span
 class=katex-mathml><math><semantics><mi>x</mi><annotation encoding="application/x-tex">x_i</annotation></semantics></math></span><span
 class=katex-html aria-hidden=true>xi</span></span> are formulas.</p>
<div class=MathJax_Display><span class=MathJax>shown</span></div><script type="math/tex; mode=display">\sum_i i</script>
<p>Raw \(E = mc^2\) for $100, and <img src="/latex/svg.image?%5Cfrac%7Ba%7D%7Bb%7D">.</p>
<mjx-container display=true><math display=block><mrow><mo>(</mo><mi>α</mi><mo>)</mo></mrow><mo>≤</mo><msqrt><mi>y</mi></msqrt></math></mjx-container>"#;
    let expected = r"Without a source, $\frac{a}{b^{2}}$ and $x_i$ are formulas.

$$
\sum_i i
$$

Raw $E = mc^2$ for $100, and $\frac{a}{b}$.

$$
\left(\alpha\right) \leq \sqrt{y}
$$";
    check(content, expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_numbers_links_and_columns_are_those_of_the_page() {
    let content = r##"<h2><a href="#one">First</a> <a class=anchor href="#one">#</a></h2>
<ul><li><input type=checkbox checked> done<li><input type=checkbox> open<ol start=3><li>three<li value=7>seven</ol></ul>
<p>See <a href="#one">above</a> and <a href="https://example.com/a_(b)">there</a>.</p>
<table><tr><th>Name<th>Link<th><tr><td>A<td><a href="https://example.com/a">a</a><td><tr><td>B<td><a href="https://example.com/b">b</a><td></table>"##;
    let expected = r"## First

- [x] done
- [ ] open
  3. three
  7. seven

See [above](#one) and [there](https://example.com/a_\(b\)).

| Name | Link |
| --- | --- |
| A | [a](https://example.com/a) |
| B | [b](https://example.com/b) |";
    check(content, expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn numbered_rows_are_a_list_and_marks_are_not_within_themselves() {
    let content = r#"<table><tr><td>1.<td colspan=2><a href="https://example.com/a">A</a><tr><td><td>12 points<tr><td>2.<td colspan=2>B
<tr><td><td>9 points<tr><td>3.<td colspan=2>C<tr><td><td>1 point</table>
<p>In 2021<sub>5</sub>, water was still H<sub>2</sub>O. <em>All <i>of</i> it</em> is <b>wet</b>, and stays so.</p>
<blockquote><p>One line<br>and another</p></blockquote>
<p>A matrix <math><mo>|</mo><mtable><mtr><mtd><mi>a</mi></mtd><mtd><mi>b</mi></mtd></mtr></mtable><mo>|</mo></math> ends it all.</p>"#;
    let expected = "1. [A](https://example.com/a)  
   12 points
2. B  
   9 points
3. C  
   1 point

In 2021<sub>5</sub>, water was still H2O. *All of it* is **wet**, and stays so.

> One line  
> and another

A matrix $\\begin{vmatrix}a & b\\end{vmatrix}$ ends it all.";
    check(content, expected).await;
}

/// An article that is mostly code has what is written around it, too.
#[tokio::test(flavor = "multi_thread")]
async fn code_is_written_with_what_is_said_about_it() {
    let code = "let anchor = Anchor::new(9.0); // kilograms\n".repeat(6);
    let page = format!(
        "<!doctype html><title>Blog</title><nav><a href=/a>Home</a> <a href=/b>About</a></nav><div class=post><h3>A heavier anchor</h3>\
         <p>This is how one is made:</p><div class=highlight><pre><code>{code}</code></pre></div><p>It holds in sand, and in mud as well.</p></div>"
    );
    let site = Site::start(2, [("/", html(page))]).await;
    let rig = Rig::start().await;
    let file = rig.text_file(request(&site.url("/")), FileKind::Markdown).await;
    let expected = format!(
        "### A heavier anchor\n\nThis is how one is made:\n\n```\n{}\n```\n\nIt holds in sand, and in mud as well.\n",
        code.trim_end()
    );
    assert_eq!(file, expected);
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn long_runs_of_spaces_and_lines_are_read() {
    let (spaces, lines) = (" ".repeat(300_000), "\n".repeat(300_000));
    let content = format!("<p>Here is <code>a{lines}</code> of it.</p><pre>b{spaces}c</pre><p>It ends.</p>");
    let expected = format!("Here is `a` of it.\n\n```\nb{spaces}c\n```\n\nIt ends.");
    check(&content, &expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn code_with_very_many_backticks_is_read() {
    let code = format!("{}x", "` ".repeat(150_000));
    check(&format!("<pre>{code}</pre>"), &format!("```\n{code}\n```")).await;
}
