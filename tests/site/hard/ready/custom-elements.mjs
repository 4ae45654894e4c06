customElements.define('app-tile', class extends HTMLElement { connectedCallback() { this.attachShadow({ mode: 'open' }).innerHTML = '<style>:host{background:lime!important}</style>' } })
