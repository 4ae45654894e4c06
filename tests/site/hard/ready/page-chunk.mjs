export default function mount(root, props) {
  root.innerHTML = `<main class="wrap"><h1>${props.title}</h1><div class="grid">${'<div class="card"><div class="thumb"></div><h3>Module</h3><p>Rendered by a chunk that came late.</p></div>'.repeat(3)}</div></main>`
}
