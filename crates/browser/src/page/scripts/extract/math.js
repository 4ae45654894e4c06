// Formulas: the TeX of MathML, KaTeX, MathJax and images of formulas.

const MAX_TEX = 4096;
const MATH_CLASSES = /(?:^|\s)(?:katex|katex-display|MathJax|MathJax_Display|MathJax_SVG|MathJax_CHTML|mwe-math-element|hurmet-tex|math-tex|temml)(?:\s|$)/;
const MATH_IMAGES = /(?:^|\s)(?:latex|tex|mathtex|math|equation|formula|mwe-math-fallback-image[\w-]*)(?:\s|$)/;
const MATH_ATTRIBUTES = ['data-latex', 'data-tex', 'data-math', 'data-entry', 'data-expr', 'data-formula', 'data-equation', 'alttext'];
const RENDERED = /(?:^|\s)(?:MathJax(?:_\w+)?|MJXc-display|MJXp-display)(?:\s|$)/;

const pairsOf = (words) => words.flatMap((word, at) => (at % 2 === 0 ? [[word, `\\${words[at + 1]}`]] : []));
const SYMBOLS = new Map(pairsOf(
  ('α alpha β beta γ gamma δ delta ε varepsilon ϵ epsilon ζ zeta η eta θ theta ϑ vartheta ι iota κ kappa λ lambda μ mu ν nu ξ xi π pi ρ rho σ sigma ς varsigma τ tau υ upsilon φ varphi ϕ phi χ chi ψ psi ω omega ' +
  'Γ Gamma Δ Delta Θ Theta Λ Lambda Ξ Xi Π Pi Σ Sigma Υ Upsilon Φ Phi Ψ Psi Ω Omega ∑ sum ∏ prod ∫ int ∬ iint ∮ oint ∂ partial ∇ nabla ∞ infty ± pm ∓ mp × times ÷ div ⋅ cdot · cdot ∗ ast ⋆ star ∘ circ ∙ bullet ' +
  '≤ leq ≥ geq ≠ neq ≈ approx ≡ equiv ∼ sim ≃ simeq ≅ cong ∝ propto ≪ ll ≫ gg ∈ in ∉ notin ∋ ni ⊂ subset ⊆ subseteq ⊃ supset ⊇ supseteq ∪ cup ∩ cap ∅ emptyset ∀ forall ∃ exists ¬ neg ∧ land ∨ lor → to ← leftarrow ↔ leftrightarrow ⇒ Rightarrow ⇐ Leftarrow ⇔ Leftrightarrow ↦ mapsto ' +
  '… ldots ⋯ cdots ⋮ vdots ⋱ ddots ⟨ langle ⟩ rangle ⌈ lceil ⌉ rceil ⌊ lfloor ⌋ rfloor ‖ | ∥ parallel ⊥ perp ∠ angle ℓ ell ℏ hbar ℜ Re ℑ Im ℵ aleph ⊕ oplus ⊗ otimes ⊤ top ⊢ vdash ⊨ models † dagger ′ prime √ surd ∣ mid ⟶ longrightarrow ⟹ implies').split(' '),
));
const BLACKBOARD = new Map([['ℝ', 'R'], ['ℂ', 'C'], ['ℕ', 'N'], ['ℤ', 'Z'], ['ℚ', 'Q'], ['ℙ', 'P'], ['𝔼', 'E']]);
const ACCENTS = new Map([['→', 'vec'], ['⃗', 'vec'], ['^', 'hat'], ['ˆ', 'hat'], ['~', 'tilde'], ['˜', 'tilde'], ['¯', 'overline'], ['‾', 'overline'], ['_', 'underline'], ['˙', 'dot'], ['.', 'dot'], ['¨', 'ddot'], ['⏞', 'overbrace'], ['⏟', 'underbrace'], ['ˇ', 'check'], ['̂', 'hat'], ['̄', 'bar'], ['̃', 'tilde']]);
const VARIANTS = new Map([['bold', 'mathbf'], ['double-struck', 'mathbb'], ['script', 'mathcal'], ['fraktur', 'mathfrak'], ['-tex-calligraphic', 'mathcal'], ['bold-italic', 'boldsymbol'], ['sans-serif', 'mathsf'], ['monospace', 'mathtt']]);
const FUNCTIONS = new Set('sin cos tan cot sec csc sinh cosh tanh arcsin arccos arctan log ln exp lim max min sup inf det dim ker gcd arg deg Pr'.split(' '));

const symbolsToTex = (text) => {
  let made = '';
  for (const character of text.replace(/[\u{1D400}-\u{1D7FF}]/gu, (letter) => letter.normalize('NFKC')).replace(/[\u2061-\u2064\u200b]/g, '')) {
    const command = SYMBOLS.get(character);
    if (command) made += `${command} `;
    else if (BLACKBOARD.has(character)) made += `\\mathbb{${BLACKBOARD.get(character)}}`;
    else if (character === '−') made += '-';
    else made += /[{}%#&$]/.test(character) ? `\\${character}` : character;
  }
  return made.trimEnd();
};

// MathML, or the elements of MathJax in its place, as TeX.
const mathToTex = (top) => {
  let left = 3000;
  const nameOfNode = (node) => (attribute(node, 'data-mml-node') ?? localName(node)).toLowerCase().replace(/^mjx-/, '');
  const partsOf = (node) => childrenOf(node).filter((child) => typeOf(child) === ELEMENT && !/^(?:mjx-)?(?:spacer|nstrut|dstrut|tstrut|assistive-mml|line|rect|style|surd|strut|mark)$/.test(localName(child)) && !/^none$/.test(localName(child)));
  const characters = (node) => {
    const text = textContent(node);
    if (text.trim()) return text;
    // MathJax draws characters by styles, and names them in classes.
    const coded = selectIn(node, '[class*="mjx-c"], [data-c]');
    return coded.map((of) => {
      const code = Number.parseInt(attribute(of, 'data-c') ?? /mjx-c([0-9A-F]{2,6})(?:\s|$)/.exec(attribute(of, 'class') ?? '')?.[1] ?? '', 16);
      return code > 31 && code < 0x110000 ? String.fromCodePoint(code) : '';
    }).join('');
  };
  const find = (node, names) => {
    for (const part of partsOf(node)) {
      if (names.includes(nameOfNode(part))) return part;
      const inner = find(part, names);
      if (inner) return inner;
    }
    return null;
  };
  const OPENING = '([{⟨';
  const CLOSING = ')]}⟩';
  const fenceOf = (node) => (nameOfNode(node) === 'mo' ? characters(node).trim() : '');
  // Brackets with a partner in the same row grow with what is between them.
  const row = (node, depth) => {
    const parts = partsOf(node);
    const sides = new Map();
    const open = [];
    for (const part of parts) {
      const sign = fenceOf(part);
      if (sign.length !== 1) continue;
      if (OPENING.includes(sign)) open.push(part);
      else if (CLOSING.includes(sign) && open.length > 0) {
        sides.set(open.pop(), '\\left');
        sides.set(part, '\\right');
      }
    }
    let made = '';
    let isTight = true;
    for (const part of parts) {
      const side = sides.get(part);
      const text = side ? `${side}${symbolsToTex(fenceOf(part))}` : write(part, depth + 1);
      if (!text) continue;
      made += isTight || side === '\\right' || /^[,;.^_]/.test(text) ? text : ` ${text}`;
      isTight = side === '\\left';
    }
    return made;
  };
  const group = (node, depth) => (node ? write(node, depth + 1) : '');
  const braced = (text) => `{${text}}`;
  const base = (text) => (/^(?:\\[A-Za-z]+|.)$/u.test(text) || /^\\?[A-Za-z]+(?:\{[^{}]*\})?$/.test(text) ? text : braced(text));
  const scripted = (node, depth) => {
    const name = nameOfNode(node);
    let parts = partsOf(node);
    const script = parts.find((part) => nameOfNode(part) === 'script');
    const isDrawn = script !== undefined || localName(node) !== name;
    if (script) parts = [parts[0], ...partsOf(script)];
    else if (isDrawn) {
      const [inner, below, above] = [['base'], ['under'], ['over']].map((names) => find(node, names));
      if (inner) parts = name === 'munder' ? [inner, below] : name === 'mover' ? [inner, above] : [inner, above, below];
    }
    const [first, second, third] = parts;
    const inner = group(first, depth);
    const one = group(second, depth);
    const two = group(third, depth);
    const accent = second ? ACCENTS.get(characters(second).trim()) : null;
    if (accent && (name === 'mover' || name === 'munder')) return `\\${accent}${braced(inner)}`;
    if (name === 'msup' || name === 'mover') return one === '\\prime' ? `${base(inner)}'` : `${base(inner)}^${braced(one)}`;
    if (name === 'msub' || name === 'munder') return `${base(inner)}_${braced(one)}`;
    return isDrawn ? `${base(inner)}_${braced(two)}^${braced(one)}` : `${base(inner)}_${braced(one)}^${braced(two)}`;
  };
  const table = (node, depth) => {
    const rows = selectIn(node, 'mtr, mlabeledtr, mjx-mtr, mjx-mlabeledtr').map((line) => ({
      isLabelled: /mlabeledtr$/.test(localName(line)),
      cells: selectIn(line, ':scope > mtd, :scope > mjx-mtd').map((cell) => row(cell, depth + 1)),
    }));
    if (rows.length === 1 && rows[0].isLabelled) return [...rows[0].cells.slice(1), rows[0].cells[0]].join(' ').trim();
    const lines = rows.map(({ isLabelled, cells }) => (isLabelled ? cells.slice(1) : cells).join(' & ')).join(' \\\\ ');
    const isAligned = attribute(node, 'columnalign') || attribute(node, 'displaystyle') === 'true';
    const name = isAligned ? 'aligned' : 'matrix';
    return `\\begin{${name}}${lines}\\end{${name}}`;
  };
  const write = (node, depth) => {
    left -= 1;
    if (left < 0 || depth > 60) return '';
    const parts = partsOf(node);
    const name = nameOfNode(node);
    switch (name) {
      case 'mi': {
        const text = characters(node).trim();
        if (FUNCTIONS.has(text)) return `\\${text}`;
        const tex = symbolsToTex(text);
        const style = VARIANTS.get(attribute(node, 'mathvariant') ?? '');
        if (style && tex) return `\\${style}{${tex}}`;
        return [...text].length > 1 && /^[\w ]+$/.test(tex) ? `\\mathrm{${tex}}` : tex;
      }
      case 'mn':
        return symbolsToTex(characters(node).trim());
      case 'mo': {
        const text = characters(node).trim();
        return symbolsToTex(text);
      }
      case 'mtext':
      case 'ms': {
        const text = characters(node).replace(/\s+/g, ' ');
        return /^[\W\d]*$/.test(text) ? symbolsToTex(text.trim()) : `\\text{${text}}`;
      }
      case 'mspace':
        return '';
      case 'annotation':
      case 'annotation-xml':
      case 'mphantom':
        return '';
      case 'semantics':
        return group(parts[0], depth);
      case 'mfrac': {
        const [above, below] = localName(node) === 'mfrac' || attribute(node, 'data-mml-node') ? parts : [find(node, ['num']), find(node, ['den'])];
        if (/^0(?:px|pt|em)?$/.test(attribute(node, 'linethickness') ?? '')) return `\\genfrac{}{}{0pt}{}${braced(group(above, depth))}${braced(group(below, depth))}`;
        return `\\frac${braced(group(above, depth))}${braced(group(below, depth))}`;
      }
      case 'msqrt': {
        const inner = localName(node) === 'mjx-msqrt' ? find(node, ['box']) : node;
        return `\\sqrt${braced(row(inner ?? node, depth))}`;
      }
      case 'mroot':
        return `\\sqrt[${group(parts[1], depth)}]${braced(group(parts[0], depth))}`;
      case 'mfenced':
        return `\\left${attribute(node, 'open') ?? '('}${parts.map((part) => write(part, depth + 1)).join(', ')}\\right${attribute(node, 'close') ?? ')'}`;
      case 'menclose':
        return /top/.test(attribute(node, 'notation') ?? '') ? `\\overline${braced(row(node, depth))}` : row(node, depth);
      case 'msup':
      case 'msub':
      case 'msubsup':
      case 'munder':
      case 'mover':
      case 'munderover':
        return scripted(node, depth);
      case 'mtable':
        return table(node, depth);
      default:
        return parts.length > 0 ? row(node, depth) : '';
    }
  };
  const tex = withFences(write(top, 0).replace(/\s+/g, ' ').trim());
  return left < 0 ? '' : tex;
};

// Matrices and fractions with what is around them.
const MATRICES = new Map([['||', 'vmatrix'], ['()', 'pmatrix'], ['[]', 'bmatrix']]);
const FENCED_MATRIX = /(?:\\left)?([|([]) ?\\begin\{matrix\}((?:(?!\\(?:begin|end)\{)[^|])*)\\end\{matrix\} ?(?:\\right)?([|)\]])/g;
const BINOMIAL = /(?:\\left)?\( ?\\genfrac\{\}\{\}\{0pt\}\{\}(\{[^{}]*\}\{[^{}]*\}) ?(?:\\right)?\)/g;
const withFences = (tex) =>
  tex.replace(FENCED_MATRIX, (all, open, cells, close) => {
    const name = MATRICES.get(open + close);
    return name ? `\\begin{${name}}${cells}\\end{${name}}` : all;
  }).replace(BINOMIAL, (_, parts) => `\\binom${parts}`);

const bareTex = (tex) => tex.replace(/\s+/g, ' ').trim().replace(/^\{\\displaystyle (.*)\}$/, '$1').replace(/^\$\$?(.*?)\$\$?$/, '$1').replace(/^\\[([](.*)\\[)\]]$/, '$1').trim();

// Images of formulas: by their class, by an alternative text that is TeX, or by an address with TeX in it.
const formulaOfImage = (element) => {
  const alt = oneLine(attribute(element, 'alt') ?? '', MAX_TEX);
  const isNamed = MATH_IMAGES.test(attribute(element, 'class') ?? '') && (/[\\^_={}]/.test(alt) || alt.length < 3 || /(?:^|\s)(?:latex|tex|mwe)/.test(attribute(element, 'class')));
  if (alt && (isNamed || /^\{?\\(?:displaystyle|textstyle|begin|frac|sum|int)\b|^\$[^$]+\$$/.test(alt))) return bareTex(alt);
  const address = attribute(element, 'src') ?? '';
  if (address.length > MAX_URL || !/latex|[/.]tex\b|math|formula|equation|cht=tx/i.test(address) || !/%5c|\\/i.test(address)) return '';
  const encoded = /[?&]chl=([^&]*)/.exec(address)?.[1] ?? /\?(?:[a-z]+=)?([^?]*)$/.exec(address)?.[1] ?? address.slice(address.lastIndexOf('/') + 1);
  try {
    const tex = decodeURIComponent(encoded.replace(/\+(?=%20|$)/g, ' ')).replace(/\.(?:svg|png|gif)$/, '');
    return /\\[A-Za-z]/.test(tex) ? bareTex(tex) : '';
  } catch {
    return '';
  }
};

// The TeX of a formula, or null if the element is none. It is empty if nothing is written for the element.
const NO_FORMULAS = new Set('a br li ul ol table tr td th tbody thead h1 h2 h3 h4 h5 h6 pre code b strong em i button iframe noscript blockquote section article svg'.split(' '));
const formula = once((element) => {
  const name = localName(element);
  if (NO_FORMULAS.has(name)) return null;
  if (name === 'img') {
    const tex = formulaOfImage(element);
    return tex ? { tex, isBlock: false } : null;
  }
  if (name === 'script') {
    const kind = attribute(element, 'type') ?? '';
    if (!/^math\/(?:tex|asciimath)/i.test(kind)) return null;
    const tex = bareTex(textContent(element));
    return tex && tex.length <= MAX_TEX ? { tex, isBlock: /mode\s*=\s*display/i.test(kind) } : null;
  }
  const classes = attribute(element, 'class') ?? '';
  const isMath = name === 'math' || name === 'mjx-container' || MATH_CLASSES.test(classes) || attribute(element, 'data-math') !== null || attribute(element, 'data-latex') !== null;
  if (!isMath) return RENDERED.test(classes) || /^MathJax_Preview$/.test(classes) ? { tex: '', isBlock: false } : null;
  // The source follows what MathJax 2 rendered.
  for (let at = nextSiblingElement(element), step = 0; at && step < 2; at = nextSiblingElement(at), step += 1) {
    if (localName(at) === 'script' && /^math\//i.test(attribute(at, 'type') ?? '')) return { tex: '', isBlock: false };
  }
  const inner = selectIn(element, 'math');
  const math = name === 'math' ? element : inner[0];
  const script = selectIn(element, 'script[type^="math/" i]')[0];
  const source = selectIn(element, 'annotation[encoding="application/x-tex" i]')[0] ?? script;
  const ofAttribute = [element, math].filter(Boolean).flatMap((of) => MATH_ATTRIBUTES.map((given) => attribute(of, given))).find((given) => given && given.trim());
  const drawn = name === 'mjx-container' ? (selectIn(element, 'mjx-math, svg [data-mml-node="math"]')[0] ?? null) : null;
  const tex = bareTex(source ? textContent(source) : ofAttribute ?? (math ? mathToTex(math) : drawn ? mathToTex(drawn) : ''));
  if (tex.length > MAX_TEX || (!tex && name !== 'mjx-container')) return null;
  const isBlock = (math && attribute(math, 'display') === 'block') || attribute(element, 'display') === 'true' || /display/i.test(classes) || /display/i.test(attribute(script ?? element, 'type') ?? '') || attribute(element, 'data-display') === 'true';
  return { tex, isBlock: Boolean(isBlock) };
});

// Formulas in text that no script has rendered: the signs between dollars must be those of a formula.
const RAW_MATH = /\$\$([^$]{1,2000})\$\$|\\\(([^$]{1,1000}?)\\\)|\\\[([^$]{1,2000}?)\\\]|(?<![\w\\$])\$(?=[^\s$\d])([^$\n]{1,500}?)(?<=[^\s\\])\$(?![\w$])/g;
const writeText = (text) => {
  if (!/\$|\\[([]/.test(text) || text.length > 100000) return escapeInline(text);
  let made = '';
  let from = 0;
  for (const found of text.matchAll(RAW_MATH)) {
    const [all, two, round, square, one] = found;
    const tex = (two ?? round ?? square ?? one).trim();
    if (!tex || (one !== undefined && !/[\\^_=+<>|]/.test(tex) && !/^[A-Za-z]'?$/.test(tex)) || (two === undefined && one === undefined && !/[\\^_=+\w]/.test(tex))) continue;
    made += escapeInline(text.slice(from, found.index)) + (one !== undefined || round !== undefined ? `$${tex}$` : `$$${tex}$$`);
    from = found.index + all.length;
  }
  return made + escapeInline(text.slice(from));
};
